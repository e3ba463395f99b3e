{{/* What values.schema.json cannot say: values that do not go together, with what to set instead. */}}
{{- define "gyrostat.check" -}}
{{- if eq .Values.image.tag "latest" -}}
{{- fail "image.tag: latest is another agent tomorrow; give the version that you pushed" -}}
{{- end -}}
{{- if and (or .Values.rbac.job .Values.rbac.nodes) (not .Values.rbac.observe) -}}
{{- fail "rbac.job and rbac.nodes are rights on top of rbac.observe, which makes the service account they are given to; set rbac.observe: true too" -}}
{{- end -}}
{{- if and .Values.cluster.enabled (not .Values.kubernetes.enabled) -}}
{{- fail "cluster.enabled: the Lease by which one agent is elected is reached as kubernetes.enabled has it; set that too" -}}
{{- end -}}
{{- with .Values.inference -}}
{{- if and .enabled (not .image) -}}
{{- fail "inference.image: name the engine's image, with its tag; none is this chart's to choose" -}}
{{- end -}}
{{- if gt (int .scaling.least) (int .scaling.most) -}}
{{- fail (printf "inference.scaling: least is %d and most is %d; least must not be more" (int .scaling.least) (int .scaling.most)) -}}
{{- end -}}
{{- end -}}
{{- include "gyrostat.checkArgs" . -}}
{{- end -}}

{{/* An option that is a value too would be given twice, and port, probe and volumes would not follow it. */}}
{{- define "gyrostat.checkArgs" -}}
{{- $owned := dict "--mode" "sidecar.mode" "--listen" "sidecar.port" "--gpu" "sidecar.gpu" "--kubernetes" "kubernetes.enabled" "--control" "control.enabled" "--control-token" "control.secretName" "--cluster" "cluster.enabled" "--cluster-address" "cluster.port" "--cluster-token-file" "cluster.secretName" -}}
{{- range .Values.sidecar.extraArgs -}}
{{- $option := first (splitList "=" .) -}}
{{- with get $owned $option -}}
{{- fail (printf "sidecar.extraArgs: %s is set by the value %s; set that instead" $option .) -}}
{{- end -}}
{{- if hasPrefix "--journal-" $option -}}
{{- fail (printf "sidecar.extraArgs: %s would change how much the run directory must hold, which is computed from the usual one; leave it out" $option) -}}
{{- end -}}
{{- end -}}
{{- end -}}
