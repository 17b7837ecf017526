
âdPost-Training RunX
âMain(d`
âĞRollout(d`Ğ
âÑ	Reference(d`Ñ
âÒActor(d`Ò
@Û¢ÿÜÄ(PZHXºglobal_step
@šòâ£İ)PZHX
!@ÎÆİÄ(PZHXºmini_batch_step
@ø–â£İ)PZHX
#@ïŸ‚İÄ(PZHXºmicro_batch_steps
@¥Ûá£İ)PZHX
@æØİÄ(PZHXºdata_loading
@ªİÄ(PZHX
@°‘ÅàÄ(PZHXºrollout
@õ¤ïàí(PZHX
!@Ø’¹Şî(PZHXºrefer_inference
@©ğ›ÿ÷(PZHX
'@±«šø(PZHXºadvantage_computation
@ôœûø(PZHX
@Ô®Èûø(PZHXºdata_loading
@¿½Ìûø(PZHX
@Ç—üø(PZHXºrollout
@ƒòÊ²ù(PZHX
!@ÊŸû²ù(PZHXºrefer_inference
@¯õ²´ù(PZHX
'@âƒÄ´ù(PZHXºadvantage_computation
@¼ˆµù(PZHX
@Á€Æµù(PZHXºdata_loading
@ÀÄñ¶ù(PZHX
@µœÈ·ù(PZHXºrollout
@Ş×âÂù(PZHX
!@‰ÉŠÄù(PZHXºrefer_inference
@ËªÏÊù(PZHX
'@Ç£²Ëù(PZHXºadvantage_computation
@ŞÎşËù(PZHX
@§–ªÌù(PZHXºdata_loading
@è¦±Ìù(PZHX
@®èÍù(PZHXºrollout
@¼ˆÒØù(PZHX
!@¨«Ùù(PZHXºrefer_inference
@½Ê‘İù(PZHX
'@Ìß²İù(PZHXºadvantage_computation
@—ˆ‚Şù(PZHX
@’Ê²Şù(PZHXºdata_loading
@†Å»Şù(PZHX
 @ÏŒÆŞù(PZHXºactor_training
@ĞÎ“İ)PZHX
!@Ëå†““)PZHXºpeft_train_step
@ˆèªÛ)PZHX
 @î¦–“İ)PZHXºactor_training
@¸ìÒ£İ)PZHX
!@¾“ö›İ)PZHXºpeft_train_step
@ËšÃ İ)PZHX
@°‘ÅàÄ(PZHXĞºrollout
@³ß˜áí(PZHXĞ
@Ç—üø(PZHXĞºrollout
@øõÓ²ù(PZHXĞ
@µœÈ·ù(PZHXĞºrollout
@Ö·ÚÃù(PZHXĞ
@®èÍù(PZHXĞºrollout
@÷ÕâØù(PZHXĞ
"@Ø’¹Şî(PZHXÑºrefer_inference
@œøËÛø(PZHXÑ
"@ÊŸû²ù(PZHXÑºrefer_inference
@Ó”µµù(PZHXÑ
"@‰ÉŠÄù(PZHXÑºrefer_inference
@ÓÚ«Ëù(PZHXÑ
"@¨«Ùù(PZHXÑºrefer_inference
@ùªÕŞù(PZHXÑ
!@ÏŒÆŞù(PZHXÒºactor_training
@ĞÎ“İ)PZHXÒ
"@Ëå†““)PZHXÒºpeft_train_step
@…ğÙ’İ)PZHXÒ
!@î¦–“İ)PZHXÒºactor_training
@¸ìÒ£İ)PZHXÒ
âdPost-Training RunX
âMain(d`
âĞRollout(d`Ğ
âÑ	Reference(d`Ñ
âÒActor(d`Ò
@Î˜©İ)PZHXºglobal_step
@Óô¾áİ)PZHX
!@ÀÃ©İ)PZHXºmini_batch_step
@âı¼áİ)PZHX
#@Ò°©İ)PZHXºmicro_batch_steps
@¸Å¼áİ)PZHX
@ıö˜©İ)PZHXºdata_loading
@Ê¬©©İ)PZHX
@âœªİ)PZHXºrollout
@÷¢²¼İ)PZHX
!@»Ä‚½İ)PZHXºrefer_inference
@ÒÒÂİ)PZHX
'@Š²àÂİ)PZHXºadvantage_computation
@‰£¶Ãİ)PZHX
@ªÒßÃİ)PZHXºdata_loading
@‹—ãÃİ)PZHX
@Ğè¼Äİ)PZHXºrollout
@ëÅİÊİ)PZHX
!@ÂÎˆËİ)PZHXºrefer_inference
@¦Ş™Ìİ)PZHX
'@Ö§«Ìİ)PZHXºadvantage_computation
@ÒŸğÌİ)PZHX
 @Ò¯«Íİ)PZHXºactor_training
@