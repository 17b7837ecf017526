module judges/dashboard-linter

go 1.25.0

require github.com/grafana/dashboard-linter v0.0.0-20231114210226-c458893a5731
