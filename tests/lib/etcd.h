// SPDX-License-Identifier: Apache-2.0
// Real etcd clusters on loopback for tests: free ports, a directory of their own, gone afterwards.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define ETCD_MEMBERS_MAX 3u

struct etcd_cluster {
	unsigned member_count;
	char directory[64];
	unsigned short client_ports[ETCD_MEMBERS_MAX];
	unsigned short peer_ports[ETCD_MEMBERS_MAX];
	pid_t pids[ETCD_MEMBERS_MAX]; // 0: not running
	char urls[ETCD_MEMBERS_MAX][64];
	const char *endpoints[ETCD_MEMBERS_MAX];
};

bool etcd_installed(void);

// Starts 1 or 3 members and waits, at most 15 s, until they take writes. Returns 0 or -1.
// Members die with their parent.
int etcd_cluster_start(struct etcd_cluster *cluster, unsigned members);

// Kills all members and removes their files.
void etcd_cluster_stop(struct etcd_cluster *cluster);

// kill -9 of one member; starting it again with what it had.
void etcd_member_kill(struct etcd_cluster *cluster, unsigned member);
int etcd_member_start(struct etcd_cluster *cluster, unsigned member);

// kill -9 of the leader. Returns its number or -1.
int etcd_leader_kill(struct etcd_cluster *cluster);

// Turns users on, with root and its password. Returns 0 or -1.
int etcd_cluster_users(struct etcd_cluster *cluster, const char *password);
