#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds counts beside intended shares: prints a table, fails when one is off by more than chance explains.

  shares.py INTENDED OBSERVED     JSON objects: {name: share, ...} and {name: count, ...}

Five standard deviations of a binomial count: one false alarm in 1.7 million.
"""
import json
import math
import sys

SIGMAS = 5


def main():
    intended, observed = (json.loads(text) for text in sys.argv[1:])
    total = sum(observed.values())
    failed = set(observed) - set(intended)
    for name in sorted(intended):
        share, count = intended[name], observed.get(name, 0)
        sigma = math.sqrt(max(total * share * (1 - share), 0.25))
        off = (count - total * share) / sigma
        print(f"  {name:12} intended {100 * share:6.2f} %   got {100 * count / max(total, 1):6.2f} %"
              f"   {count:6} of {total}   {off:+5.1f} sigma")
        if abs(off) > SIGMAS:
            failed.add(name)
    for name in sorted(failed):
        print(f"  {name}: not what was intended")
    return 1 if failed or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
