{{/*
What the manifests of deploy/kustomize and dashboards/prometheus say, read from these files themselves.
Each takes (dict "chart" SCOPE "path" PATH): SCOPE is this chart's own ., or .Subcharts.gyrostat in a chart above it.
*/}}

{{- define "gyrostat.file" -}}
{{- $text := .chart.Files.Get (printf "files/%s" .path) -}}
{{- if not $text -}}
{{- fail (printf "files/%s is not in this chart: use a whole clone of the repository, where files/ links to it, or what `helm package` made of one; and include these templates with .Subcharts.gyrostat" .path) -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* A JSON list of the objects in a file, in the release's namespace, with the chart's labels. */}}
{{- define "gyrostat.objects" -}}
{{- $found := list -}}
{{- $labels := include "gyrostat.labels" .chart | fromYaml -}}
{{- $namespace := .chart.Release.Namespace -}}
{{- range regexSplit "(?m)^---$" (include "gyrostat.file" .) -1 -}}
{{- $object := fromYaml . -}}
{{- $_ := set $object.metadata "labels" (merge (default dict $object.metadata.labels) $labels) -}}
{{- if not (hasPrefix "ClusterRole" $object.kind) -}}
{{- $_ := set $object.metadata "namespace" $namespace -}}
{{- end -}}
{{- $found = append $found $object -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "gyrostat.labels" -}}
app.kubernetes.io/name: gyrostat
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "gyrostat.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{/* Takes (dict "chart" SCOPE "spec" POD-SPEC): who pulls with what, for pods that are this chart's own. */}}
{{- define "gyrostat.pulling" -}}
{{- $names := list -}}
{{- range .chart.Values.image.pullSecrets -}}{{- $names = append $names (dict "name" .) -}}{{- end -}}
{{- if $names -}}{{- $_ := set .spec "imagePullSecrets" $names -}}{{- end -}}
{{- end -}}
