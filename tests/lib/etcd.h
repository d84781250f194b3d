// SPDX-License-Identifier: Apache-2.0
// Real etcd clusters on loopback for tests: free ports, a directory of their own, gone afterwards.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define ETCD_MEMBERS_MAX 3u

// How a cluster talks. Secure: TLS on client and peer ports, clients show a certificate; the files of
// tests/lib/certificates lie in its directory. A token that is not used for ETCD_TOKEN_S is none any more.
enum etcd_kind {
	ETCD_PLAIN,
	ETCD_SECURE,
	ETCD_SECURE_SIGNED, // tokens are signed (JWT) and end ETCD_TOKEN_S after their login, used or not
};

#define ETCD_TOKEN_S 2

// What etcd_cluster_users() makes. The user's role has ETCD_USER_PREFIX and nothing else.
#define ETCD_USER        "ringway"
#define ETCD_PASSWORD    "a secret \"of\" 1"
#define ETCD_USER_PREFIX "/fleet/"

struct etcd_cluster {
	unsigned member_count;
	enum etcd_kind kind;
	bool users; // are on: etcdctl needs root then
	char directory[64];
	unsigned short client_ports[ETCD_MEMBERS_MAX];
	unsigned short peer_ports[ETCD_MEMBERS_MAX];
	pid_t pids[ETCD_MEMBERS_MAX]; // 0: not running
	char urls[ETCD_MEMBERS_MAX][64];
	const char *endpoints[ETCD_MEMBERS_MAX];
};

bool etcd_installed(void); // and openssl, for the certificates

// Starts 1 or 3 members and waits, at most 15 s, until they take writes. Returns 0 or -1.
// Members die with their parent.
int etcd_cluster_start(struct etcd_cluster *cluster, unsigned members, enum etcd_kind kind);

// Kills all members and removes their files.
void etcd_cluster_stop(struct etcd_cluster *cluster);

// kill -9 of one member; starting it again with what it had.
void etcd_member_kill(struct etcd_cluster *cluster, unsigned member);
int etcd_member_start(struct etcd_cluster *cluster, unsigned member);

// kill -9 of the leader. Returns its number or -1.
int etcd_leader_kill(struct etcd_cluster *cluster);

// Turns users on: root, and ETCD_USER. Returns 0 or -1.
int etcd_cluster_users(struct etcd_cluster *cluster);

// Runs etcdctl as root, "put key value". Returns its exit code.
int etcd_control(const struct etcd_cluster *cluster, unsigned member, const char *words);

// A file in the cluster's directory, "node.pem". The caller frees it.
char *etcd_file(const struct etcd_cluster *cluster, const char *name);
