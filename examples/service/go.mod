module github.com/go-psi/psi/examples/service

go 1.26.0

replace (
	github.com/go-psi/psi => ../..
	github.com/go-psi/psi/middleware/prommcp => ../../middleware/prommcp
)

require (
	github.com/go-chi/chi/v5 v5.5.0
	github.com/go-psi/psi v0.0.0
	github.com/go-psi/psi/middleware/prommcp v0.0.0
	github.com/prometheus/client_golang v1.25.0
	go.yaml.in/yaml/v4 v4.0.0
)

require (
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/buger/jsonparser v1.1.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-chi/cors v1.2.2 // indirect
	github.com/go-jose/go-jose/v4 v4.1.9 // indirect
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/invopop/jsonschema v0.14.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/pb33f/ordered-map/v2 v2.3.1 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	github.com/tmaxmax/go-sse v0.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
