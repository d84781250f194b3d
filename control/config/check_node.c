// SPDX-License-Identifier: Apache-2.0
#include "control/config/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATH_BYTES 160u

static void workers_check(const struct config_dataplane *d, struct config_report *report)
{
	if (d->worker_count == 0)
		config_report_add(report, CONFIG_OUT_OF_RANGE, "dataplane.workers",
			"each worker polls one CPU", "at least one worker is needed");
	for (uint32_t i = 0; i < d->worker_count; i++) {
		char path[PATH_BYTES];

		snprintf(path, sizeof(path), "dataplane.workers[%u]", i);
		if (d->workers[i] == d->main)
			config_report_warn(report, CONFIG_CONFLICT, path,
				"choose another CPU, but for a trial on a small machine",
				"CPU %u is the main lcore's, they share it", d->main);
		for (uint32_t j = 0; j < i; j++) {
			if (d->workers[i] == d->workers[j])
				config_report_add(report, CONFIG_DUPLICATE_NAME, path, NULL,
					"CPU %u is given twice", d->workers[i]);
		}
	}
}

// What Ringway itself tells EAL; a second word for it would win or be refused at start.
static void eal_check(const struct config_dataplane *d, struct config_report *report)
{
	static const char *const taken[] = {
		"-l", "-c", "-s", "-S", "--lcores", "--main-lcore", "--proc-type"};

	for (uint32_t i = 0; i < d->eal_count; i++) {
		for (size_t j = 0; j < sizeof(taken) / sizeof(taken[0]); j++) {
			size_t length = strlen(taken[j]);
			bool same = strncmp(d->eal[i], taken[j], length) == 0 &&
				(d->eal[i][length] == '\0' || d->eal[i][length] == '=' ||
					taken[j][1] != '-');
			char path[PATH_BYTES];

			if (!same)
				continue;
			snprintf(path, sizeof(path), "dataplane.eal[%u]", i);
			config_report_add(report, CONFIG_CONFLICT, path, "use `main` and `workers`",
				"%s is set by Ringway", taken[j]);
		}
	}
}

static bool on_link(const struct config_link *link, const struct ip_addr *gateway)
{
	// fe80::/10 is on every link (RFC 4291 section 2.5.6).
	if (gateway->family == ADDR_V6 && gateway->bytes[0] == 0xfe &&
		(gateway->bytes[1] & 0xc0) == 0x80)
		return true;
	for (uint32_t i = 0; i < link->address_count; i++) {
		const struct config_prefix *own = &link->addresses[i];

		if (own->address.family == gateway->family &&
			addr_in_prefix(gateway, &own->address, own->bits))
			return true;
	}
	return false;
}

#define IPV6_MTU_MIN 1280u // RFC 8200 section 5

static void link_check(const struct config_link *link, uint32_t index, struct config_report *report)
{
	char path[PATH_BYTES];

	for (uint32_t i = 0; i < link->address_count; i++) {
		snprintf(path, sizeof(path), "dataplane.ports[%u].mtu", index);
		if (link->addresses[i].address.family == ADDR_V6 && link->mtu < IPV6_MTU_MIN) {
			config_report_add(report, CONFIG_OUT_OF_RANGE, path, NULL,
				"%u is too small for IPv6, which needs 1280", link->mtu);
			break;
		}
	}
	for (uint32_t i = 0; i < link->gateway_count; i++) {
		snprintf(path, sizeof(path), "dataplane.ports[%u].gateways[%u]", index, i);
		for (uint32_t j = 0; j < i; j++) {
			if (link->gateways[i].family == link->gateways[j].family)
				config_report_add(report, CONFIG_CONFLICT, path, NULL,
					"the port has a gateway of this family already");
		}
		if (link->gateways[i].family != ADDR_NONE && !on_link(link, &link->gateways[i]))
			config_report_add(report, CONFIG_CONFLICT, path,
				"give the port an address of the gateway's network",
				"the gateway is on no network of this port's addresses");
	}
}

static void links_check(const struct config_dataplane *d, struct config_report *report)
{
	if (d->port_count == 0)
		config_report_add(report, CONFIG_OUT_OF_RANGE, "dataplane.ports", NULL,
			"at least one port is needed");
	for (uint32_t i = 0; i < d->port_count; i++) {
		char path[PATH_BYTES];

		link_check(&d->ports[i], i, report);
		snprintf(path, sizeof(path), "dataplane.ports[%u].device", i);
		for (uint32_t j = 0; j < i; j++) {
			if (d->ports[i].device[0] != '\0' &&
				strcmp(d->ports[i].device, d->ports[j].device) == 0)
				config_report_add(report, CONFIG_DUPLICATE_NAME, path, NULL,
					"is ports[%u] already", j);
		}
	}
}

// Whether a URL's host, with whatever follows it, is this machine.
static bool on_this_machine(const char *host)
{
	static const char *const loopback[] = {"127.", "localhost", "[::1]"};

	for (size_t i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++) {
		if (strncmp(host, loopback[i], strlen(loopback[i])) == 0)
			return true;
	}
	return false;
}

// Passwords and the seed of the flow hash go there, so in the open only when somebody said so.
static void endpoint_check(
	const struct config_store *store, uint32_t index, struct config_report *report)
{
	const char *url = store->endpoints[index];
	bool secure = strncmp(url, "https://", 8) == 0, plain = strncmp(url, "http://", 7) == 0;
	const char *host = url + (secure ? 8 : 7);
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "store.endpoints[%u]", index);
	// The sentence does not repeat it: there may be a password in it.
	if ((secure || plain) && strchr(host, '@') != NULL)
		config_report_add(report, CONFIG_BAD_VALUE, path, "use `user` and `password_file`",
			"a URL of etcd has no user in it");
	else if ((!secure && !plain) || host[0] == '\0' || strpbrk(host, "/?# ") != NULL)
		config_report_add(report, CONFIG_BAD_VALUE, path, "https://etcd-1:2379",
			"\"%s\" is no https://HOST:PORT", url);
	else if (plain && store->plaintext == CONFIG_PLAINTEXT_LOOPBACK && !on_this_machine(host))
		config_report_add(report, CONFIG_CONFLICT, path,
			"https://, or `plaintext: anywhere` if the network is trusted",
			"\"%s\" would carry the state and its secrets in the open", url);
	else if (plain && store->tls.key[0] != '\0')
		config_report_add(report, CONFIG_CONFLICT, path, "https://",
			"\"%s\" would not use `tls`", url);
}

static void store_check(const struct config_store *store, struct config_report *report)
{
	bool certificate = store->tls.certificate[0] != '\0';
	bool key = store->tls.key[0] != '\0';

	if (store->type == CONFIG_STORE_ETCD && store->endpoint_count == 0)
		config_report_add(report, CONFIG_MISSING_KEY, "store",
			"endpoints: [\"https://etcd-1:2379\"]", "etcd without `endpoints`");
	for (uint32_t i = 0; i < store->endpoint_count; i++)
		endpoint_check(store, i, report);
	if (store->type == CONFIG_STORE_FILE && store->path[0] != '/')
		config_report_add(report, CONFIG_BAD_VALUE, "store.path", NULL,
			"\"%s\" is no absolute path", store->path);
	if (certificate != key)
		config_report_add(report, CONFIG_MISSING_KEY, "store.tls", NULL,
			"`certificate` and `key` need each other");
	if ((store->user[0] != '\0') != (store->password_file[0] != '\0'))
		config_report_add(report, CONFIG_MISSING_KEY, "store", NULL,
			"`user` and `password_file` need each other");
}

int config_node_check(const struct config_node *node, struct config_report *report)
{
	const struct config_dataplane *d = &node->dataplane;

	workers_check(d, report);
	eal_check(d, report);
	links_check(d, report);
	store_check(&node->store, report);
	if (d->flow_entries != 0 && (d->flow_entries & (d->flow_entries - 1)) != 0)
		config_report_add(report, CONFIG_BAD_VALUE, "dataplane.flow_entries",
			"1048576 is one", "%u is no power of two", d->flow_entries);
	if (node->run_dir[0] != '/')
		config_report_add(report, CONFIG_BAD_VALUE, "run_dir", NULL,
			"\"%s\" is no absolute path", node->run_dir);
	return report->error_count > 0 ? -EINVAL : 0;
}
