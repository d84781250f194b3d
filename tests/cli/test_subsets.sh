#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The case where rings eat gigabytes: 2,048 weighted backends, a ring for each set of five features. What v2 and v3 make of
# it, by the real binary over the files that configs/subsets writes.
. "$(dirname "$0")/lib.sh"
generate=$(dirname "$0")/../../configs/subsets/generate

for version in v2 v3; do
	"$generate" --ring $version > "$work/$version.yaml"
	json "the $version file validates" 0 '.valid' validate -f "$work/$version.yaml"
done
services=$(grep -c '  - name: .*' <(sed -n '/^services:/,$p' "$work/v3.yaml"))
[ "$services" = 32 ]
result $? "each of the 2^5 sets has a service"

for ring in cache cache+nvme cache+image,video cache+edge,image,mtls,nvme,video; do
	json "$ring as v2 takes less than a twelfth of v1" 0 '.ring_bytes * 12 < .as_v1_bytes and .version == "v2"' \
		ring show -f "$work/v2.yaml" "$ring"
	json "$ring as v3 takes less than a 300th of v1, and is even" 0 \
		'.ring_bytes * 300 < .as_v1_bytes and .hottest_ratio < 1.03 and .coldest_ratio > 0.97' \
		ring show -f "$work/v3.yaml" "$ring"
done
finish
