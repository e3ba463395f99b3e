{{/*
The sidecar for a pod template of yours. Each takes the scope of this chart, which is .Subcharts.gyrostat in yours:

  gyrostat.podFields     below spec: the service account, where the sidecar acts by the API; else nothing
  gyrostat.sidecar       items of initContainers
  gyrostat.env           items of env of the container that trains
  gyrostat.volumeMounts  items of its volumeMounts
  gyrostat.volumes       items of volumes

Of yours it wants the label gyrostat-run, a runAsUser of the pod, and the volume of sidecar.checkpoints.
*/}}

{{- define "gyrostat.podFields" -}}
{{- with (include "gyrostat.parts" . | fromJson).account -}}serviceAccountName: {{ . }}{{- end -}}
{{- end -}}

{{- define "gyrostat.sidecar" -}}
{{- $parts := include "gyrostat.parts" . | fromJson -}}
{{- append $parts.before $parts.sidecar | toYaml -}}
{{- end -}}

{{- define "gyrostat.env" -}}
{{- (include "gyrostat.parts" . | fromJson).env | toYaml -}}
{{- end -}}

{{- define "gyrostat.volumeMounts" -}}
{{- (include "gyrostat.parts" . | fromJson).mounts | toYaml -}}
{{- end -}}

{{- define "gyrostat.volumes" -}}
{{- (include "gyrostat.parts" . | fromJson).volumes | toYaml -}}
{{- end -}}

{{/* All of them, as JSON: kustomize's base, its components where they are asked for, and what values change of it. */}}
{{- define "gyrostat.parts" -}}
{{- include "gyrostat.check" . -}}
{{- $spec := (include "gyrostat.file" (dict "chart" . "path" "kustomize/base/sidecar.yaml") | fromYaml).template.spec -}}
{{- $parts := dict "before" list "sidecar" (first $spec.initContainers) "account" "" -}}
{{- $trainer := first $spec.containers -}}
{{- $_ := set $parts "env" $trainer.env -}}
{{- $_ := set $parts "mounts" $trainer.volumeMounts -}}
{{- $volumes := list -}}
{{- range $spec.volumes -}}{{- if hasKey . "emptyDir" -}}{{- $volumes = append $volumes . -}}{{- end -}}{{- end -}}
{{- $_ := set $parts "volumes" $volumes -}}
{{- if .Values.sidecar.gpu -}}
{{- $component := include "gyrostat.file" (dict "chart" . "path" "kustomize/components/gpu/kustomization.yaml") | fromYaml -}}
{{- include "gyrostat.patch" (dict "parts" $parts "patch" (first $component.patches).patch) -}}
{{- end -}}
{{- range $name := list "kubernetes" "cluster" "control" -}}
{{- if (index $.Values $name).enabled -}}
{{- $patch := include "gyrostat.file" (dict "chart" $ "path" (printf "kustomize/components/%s/patch.yaml" $name)) -}}
{{- include "gyrostat.patch" (dict "parts" $parts "patch" $patch) -}}
{{- end -}}
{{- end -}}
{{- include "gyrostat.valued" (dict "chart" . "parts" $parts) -}}
{{- toJson $parts -}}
{{- end -}}

{{/* A component of kustomize's, applied to the parts: it adds, and tests that what it adds to is the sidecar. */}}
{{- define "gyrostat.patch" -}}
{{- $parts := .parts -}}
{{- $sidecar := $parts.sidecar -}}
{{- range fromYamlArray .patch -}}
{{- $place := regexReplaceAll "^.*/spec/" .path "" -}}
{{- if eq .op "test" -}}
{{- else if hasPrefix "initContainers/0/" $place -}}
{{- $list := trimSuffix "/-" (trimPrefix "initContainers/0/" $place) -}}
{{- $_ := set $sidecar $list (append (index $sidecar $list) .value) -}}
{{- else if eq $place "initContainers/0" -}}
{{- $_ := set $parts "before" (append $parts.before .value) -}}
{{- else if eq $place "volumes/-" -}}
{{- $_ := set $parts "volumes" (append $parts.volumes .value) -}}
{{- else if eq $place "serviceAccountName" -}}
{{- $_ := set $parts "account" .value -}}
{{- else -}}
{{- fail (printf "this chart does not know how to add at %s" .path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What values change of the parts. */}}
{{- define "gyrostat.valued" -}}
{{- $values := .chart.Values -}}
{{- $parts := .parts -}}
{{- $image := include "gyrostat.image" .chart -}}
{{- range append $parts.before $parts.sidecar -}}
{{- $_ := set . "image" $image -}}
{{- $_ := set . "imagePullPolicy" $values.image.pullPolicy -}}
{{- end -}}
{{- if $parts.account -}}{{- $_ := set $parts "account" $values.rbac.serviceAccount -}}{{- end -}}
{{- $sidecar := $parts.sidecar -}}
{{- $args := list -}}
{{- range $sidecar.args -}}
{{- $arg := regexReplaceAll "^(--listen=.*:)[0-9]+$" . (printf "${1}%d" (int $values.sidecar.port)) -}}
{{- $arg = regexReplaceAll "^(--control=.*:)[0-9]+$" $arg (printf "${1}%d" (int $values.control.port)) -}}
{{- $arg = regexReplaceAll "^(--cluster-address=.*:)[0-9]+$" $arg (printf "${1}%d" (int $values.cluster.port)) -}}
{{- $arg = regexReplaceAll "^--mode=.*$" $arg (printf "--mode=%s" $values.sidecar.mode) -}}
{{- $args = append $args $arg -}}
{{- end -}}
{{- $_ := set $sidecar "args" (concat $args $values.sidecar.extraArgs) -}}
{{- $_ := set (first $sidecar.ports) "containerPort" (int $values.sidecar.port) -}}
{{- $_ := set $sidecar "resources" $values.sidecar.resources -}}
{{- $mounts := list -}}
{{- range $sidecar.volumeMounts -}}
{{- if ne .name "checkpoints" -}}
{{- $mounts = append $mounts . -}}
{{- else if $values.sidecar.checkpoints.volume -}}
{{- $mounts = append $mounts (dict "name" $values.sidecar.checkpoints.volume "mountPath" $values.sidecar.checkpoints.mountPath) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $sidecar "volumeMounts" $mounts -}}
{{- range $parts.volumes -}}
{{- if eq .name "gyrostat" -}}
{{- /* 64Mi of records a rank, 512Mi of journal, 64Mi of its write-ahead log. */ -}}
{{- $_ := set .emptyDir "sizeLimit" (printf "%dMi" (mul 4 (add (mul 64 (int $values.sidecar.ranks)) 512 64))) -}}
{{- else if hasKey . "secret" -}}
{{- $_ := set .secret "secretName" (index $values (trimPrefix "gyrostat-" .name)).secretName -}}
{{- end -}}
{{- end -}}
{{- end -}}
