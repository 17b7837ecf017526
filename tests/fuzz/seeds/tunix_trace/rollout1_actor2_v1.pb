
âdPost-Training RunX
âèMain -- thread 0(d`è
âéMain -- thread 1(d`é
âĞRollout(d`Ğ
âÑ	Reference(d`Ñ
âÒActor(d`Ò
@Íö’+PZHXèºglobal_step
@°Ìâä,PZHXè
"@ÍŸö’+PZHXèºmini_batch_step
@èÓÏÂà,PZHXè
$@º± ö’+PZHXèºmicro_batch_steps
@‰áÎÂà,PZHXè
@ÛËÜƒĞ+PZHXèºdata_loading
@’àâĞ+PZHXè
@¸Òå—Ğ+PZHXèºrollout
@ƒıÊ¼Ñ+PZHXè
"@í ¾Ñ+PZHXèºrefer_inference
@÷¿ıÂÑ+PZHXè
(@Æ£ÃÑ+PZHXèºadvantage_computation
@í‰‹ÄÑ+PZHXè
@ÇşÆÄÑ+PZHXèºdata_loading
@Á×ÑÄÑ+PZHXè
@éù²ÆÑ+PZHXèºrollout
@¾„×Ñ+PZHXè
"@ÄáëáÑ+PZHXèºrefer_inference
@ªóçÑ+PZHXè
(@úİîèÑ+PZHXèºadvantage_computation
@úßÖéÑ+PZHXè
@õ–¿ñÑ+PZHXèºdata_loading
@›ÚÌñÑ+PZHXè
!@èÜİñÑ+PZHXèºactor_training
@¶‰úà,PZHXè
"@ÛÂ÷+PZHXèºpeft_train_step
@ÎÉßÂÜ,PZHXè
!@¡šà,PZHXèºactor_training
@Ê¿½Âà,PZHXè
"@€ŒÃ¦à,PZHXèºpeft_train_step
@ùæûÁà,PZHXè
@à£ÒÂà,PZHXèºweight_sync
@ÊÔŞä,PZHXè
@Íö’+PZHXéºglobal_step
@°Ìâä,PZHXé
"@ÍŸö’+PZHXéºmini_batch_step
@èÓÏÂà,PZHXé
$@º± ö’+PZHXéºmicro_batch_steps
@‰áÎÂà,PZHXé
@£¥®ö’+PZHXéºdata_loading
@Øû¹ö’+PZHXé
@ß¡Æ÷’+PZHXéºrollout
@¼å§øÂ+PZHXé
"@·ÒéïÄ+PZHXéºrefer_inference
@¢ÄñúÎ+PZHXé
(@Û±ıúÎ+PZHXéºadvantage_computation
@ıÍªøÏ+PZHXé
@Æ²ÎùÏ+PZHXéºdata_loading
@×àÖùÏ+PZHXé
@Ûù¦ƒĞ+PZHXéºrollout
@½Ñ+PZHXé
"@“µÏ½Ñ+PZHXéºrefer_inference
@Š˜ñÆÑ+PZHXé
(@Å¼†ÇÑ+PZHXéºadvantage_computation
@‘âÇÑ+PZHXé
!@èÜİñÑ+PZHXéºactor_training
@¶‰úà,PZHXé
!@¡šà,PZHXéºactor_training
@Ê¿½Âà,PZHXé
@ß¡Æ÷’+PZHXĞºrollout
@óşÆùÂ+PZHXĞ
@¸Òå—Ğ+PZHXĞºrollout
@‰•Ö¼Ñ+PZHXĞ
@‰•Ö¼Ñ+PZHXĞºrollout
@¦ó ½Ñ+PZHXĞ
@éù²ÆÑ+PZHXĞºrollout
@ƒËÙÛÑ+PZHXĞ
"@·ÒéïÄ+PZHXÑºrefer_inference
@°¾áêĞ+PZHXÑ
"@í ¾Ñ+PZHXÑºrefer_inference
@¾ÃÑ+PZHXÑ
"@¾ÃÑ+PZHXÑºrefer_inference
@óã£ÈÑ+PZHXÑ
"@ÄáëáÑ+PZHXÑºrefer_inference
@íª–úÑ+PZHXÑ
!@èÜİñÑ+PZHXÒºactor_training
@¶‰úà,PZHXÒ
"@ÛÂ÷+PZHXÒºpeft_train_step
@Æ€ßà,PZHXÒ
!@¡šà,PZHXÒºactor_training
@Ê¿½Âà,PZHXÒ
"@€ŒÃ¦à,PZHXÒºpeft_train_step
@ÖíšÂà,PZHXÒ
âdPost-Training RunX
âèMain -- thread 0(d`è
âéMain -- thread 1(d`é
âĞRollout(d`Ğ
âÑ	Reference(d`Ñ
âÒActor(d`Ò
@Ÿ è¨ä,PZHXèºglobal_step
@šó¼©è,PZHXè
"@£½ê¨ä,PZHXèºmini_batch_step
@