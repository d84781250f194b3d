// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/options.h"

#include "tests/lib/suite.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct options options;
static char error[OPTIONS_ERROR_SIZE];

// Parses arguments that are separated by single spaces. Options point into the copy until the next call.
static enum options_outcome parse(const char *line)
{
	static char copy[4096];
	char *argv[64] = {"ringway-dataplane"}, *rest = copy, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	options_free(&options);

	while ((word = strsep(&rest, " ")) != NULL && argc < 64) {
		if (word[0] != '\0')
			argv[argc++] = word;
	}
	return options_parse(argc, argv, &options, error);
}

static void a_full_line_is_read_as_written(void)
{
	CU_ASSERT_EQUAL_FATAL(
		parse("--run-dir /tmp/x --huge-dir /mnt/h --main 3 --workers 1,2,2 "
		      "--flow-entries 4096 --services 10 --pools 20 --backends 30 --idle-sleep "
		      "--eal --in-memory --eal -m64 "
		      "--port net_af_packet0,iface=eth1 --mtu 1600 --vlan 100 --address 192.0.2.10/24 "
		      "--address 2001:db8:1::10/64 --gateway 192.0.2.1 --gateway 2001:db8:1::1 "
		      "--punt lb0 --port 0000:3b:00.0"),
		OPTIONS_RUN);
	CU_ASSERT_STRING_EQUAL(options.run_dir, "/tmp/x");
	CU_ASSERT_STRING_EQUAL(options.huge_dir, "/mnt/h");
	CU_ASSERT_EQUAL(options.main_cpu, 3);
	CU_ASSERT_EQUAL(options.worker_count, 3);
	CU_ASSERT_EQUAL(options.worker_cpus[0], 1);
	CU_ASSERT_EQUAL(options.worker_cpus[2], 2);
	CU_ASSERT_EQUAL(options.flow_entries, 4096);
	CU_ASSERT_EQUAL(options.capacity.worker_count, 3);
	CU_ASSERT_EQUAL(options.capacity.service_count, 10);
	CU_ASSERT_EQUAL(options.capacity.pool_count, 20);
	CU_ASSERT_EQUAL(options.capacity.backend_count, 30);
	CU_ASSERT_TRUE(options.idle_sleep);
	CU_ASSERT_EQUAL(options.eal_count, 2);
	CU_ASSERT_STRING_EQUAL(options.eal[1], "-m64");
	CU_ASSERT_EQUAL_FATAL(options.port_count, 2);
	CU_ASSERT_STRING_EQUAL(options.ports[0].device, "net_af_packet0,iface=eth1");
	CU_ASSERT_EQUAL(options.ports[0].mtu, 1600);
	CU_ASSERT_EQUAL(options.ports[0].vlan, 100);
	CU_ASSERT_EQUAL(options.ports[0].address_count, 2);
	CU_ASSERT_EQUAL(options.ports[0].addresses[0].prefix_bits, 24);
	CU_ASSERT_EQUAL(options.ports[0].addresses[1].address.family, ADDR_V6);
	CU_ASSERT_EQUAL(options.ports[0].gateway4.bytes[3], 1);
	CU_ASSERT_EQUAL(options.ports[0].gateway6.family, ADDR_V6);
	CU_ASSERT_STRING_EQUAL(options.ports[0].punt, "lb0");
	CU_ASSERT_EQUAL(options.ports[1].mtu, 1500);
	CU_ASSERT_EQUAL(options.ports[1].vlan, 0);
	CU_ASSERT_EQUAL(options.ports[1].address_count, 0);
	CU_ASSERT_PTR_NULL(options.ports[1].punt);
}

static void what_is_not_said_has_the_defaults_of_the_help(void)
{
	CU_ASSERT_EQUAL_FATAL(parse("--port net_null0"), OPTIONS_RUN);
	CU_ASSERT_STRING_EQUAL(options.run_dir, "/run/ringway");
	CU_ASSERT_EQUAL(options.worker_count, 1);
	CU_ASSERT_EQUAL(options.worker_cpus[0], 1);
	CU_ASSERT_EQUAL(options.main_cpu, 0);
	CU_ASSERT_EQUAL(options.flow_entries, 1048576);
	CU_ASSERT_EQUAL(options.capacity.backend_count, 65536);
	CU_ASSERT_FALSE(options.idle_sleep);
	CU_ASSERT_PTR_NOT_NULL(strstr(options_help(), "1048576"));
	CU_ASSERT_PTR_NOT_NULL(strstr(options_help(), "65536"));
	CU_ASSERT_EQUAL(parse("--help"), OPTIONS_HELP);
	CU_ASSERT_EQUAL(parse("--version"), OPTIONS_VERSION);
}

static void every_mistake_names_the_flag_and_the_value(void)
{
	static const struct {
		const char *line;
		const char *text;
	} mistakes[] = {
		{"", "--port: at least one"},
		{"--port net_null0 --mtu", "--mtu: needs a value"},
		{"--prot net_null0", "--prot: unknown"},
		{"-x", "-x: unknown"},
		{"--port net_null0 stray", "\"stray\": no flag before it"},
		{"--mtu 1500", "--mtu: belongs to a port"},
		{"--address 192.0.2.1/24", "--address: belongs to a port"},
		{"--gateway 192.0.2.1 --port net_null0", "--gateway: belongs"},
		{"--punt x --port net_null0", "--punt: belongs"},
		{"--port net_null0 --mtu 575", "--mtu 575: must be a number from 576 to 9600"},
		{"--port net_null0 --mtu 1500x", "--mtu 1500x: must be"},
		{"--vlan 5", "--vlan: belongs to a port"},
		{"--port net_null0 --vlan 0", "--vlan 0: must be a number from 1 to 4094"},
		{"--port net_null0 --vlan 4095", "--vlan 4095: must be a number from 1 to 4094"},
		{"--port net_null0 --mtu -1", "--mtu -1: must be"},
		{"--port net_null0 --mtu 99999999999999999999", "--mtu 99999999999999999999: must"},
		{"--port net_null0 --address 192.0.2.1", "--address 192.0.2.1: must be ADDRESS/"},
		{"--port net_null0 --address 192.0.2/24", "--address 192.0.2/24: no IPv4"},
		{"--port net_null0 --address 192.0.2.1/33", "prefix length must be 1 to 32"},
		{"--port net_null0 --address ::1/129", "prefix length must be 1 to 128"},
		{"--port net_null0 --address ::1/", "prefix length must be 1 to 128"},
		{"--port net_null0 --gateway nobody", "--gateway nobody: no IPv4"},
		{"--port net_null0 --gateway 1.1.1.1 --gateway 1.1.1.2",
			"--gateway 1.1.1.2: net_null0 has one"},
		{"--port net_null0 --punt a/b", "--punt a/b: no name"},
		{"--port net_null0 --punt aaaaaaaaaaaaaaaa", "--punt aaaaaaaaaaaaaaaa: no name"},
		{"--workers 1,,2", "--workers : must be a number"},
		{"--workers 1024", "--workers 1024: must be a number from 0 to 1023"},
		{"--workers 1;2", "--workers 1;2: must be"},
		{"--main x", "--main x: must be"},
		{"--flow-entries 63", "--flow-entries 63: must be a number from 64"},
		{"--services 0", "--services 0: must be a number from 1"},
		{"--backends 1048577", "--backends 1048577: must be a number from 1 to 1048576"},
		{"--idle-sleep=5", "--idle-sleep=5: unknown, ambiguous or given a value"},
		{"--args /nonexistent/file", "--args /nonexistent/file: No such file"},
		{"--replay in.pcap", "--replay in.pcap: needs the name of the output"},
		{"--replay in.pcap out.pcap", "--replay: needs --snapshot"},
		{"--port net_null0 --snapshot x", "--snapshot x: only for --replay"},
		{"--neighbour-mac 02:00", "--neighbour-mac 02:00: must be six bytes"},
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		CU_ASSERT_EQUAL(parse(mistakes[i].line), OPTIONS_BAD);
		CU_ASSERT_PTR_NOT_NULL(strstr(error, mistakes[i].text));
		if (strstr(error, mistakes[i].text) == NULL)
			printf("# \"%s\": \"%s\", expected \"%s\"\n", mistakes[i].line, error,
				mistakes[i].text);
	}
}

static void limits_of_lists_are_checked(void)
{
	char line[4096] = "--workers 0";
	size_t used = strlen(line);

	for (unsigned i = 0; i < PIPELINE_WORKERS_MAX; i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, ",%u", i);
	CU_ASSERT_EQUAL(parse(line), OPTIONS_BAD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "more than 64 workers"));
	used = 0;
	for (unsigned i = 0; i < PIPELINE_PORTS_MAX; i++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "--port net_null%u ", i);
	CU_ASSERT_EQUAL(parse(line), OPTIONS_RUN);
	CU_ASSERT_EQUAL(options.port_count, PIPELINE_PORTS_MAX);
	snprintf(line + used, sizeof(line) - used, "--port net_null16");
	CU_ASSERT_EQUAL(parse(line), OPTIONS_BAD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "--port net_null16: more than 16 ports"));
	used = (size_t)snprintf(line, sizeof(line), "--port net_null0");
	for (unsigned i = 0; i <= PIPELINE_ADDRESSES_MAX; i++)
		used += (size_t)snprintf(
			line + used, sizeof(line) - used, " --address 192.0.2.%u/24", i + 1);
	CU_ASSERT_EQUAL(parse(line), OPTIONS_BAD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "--address 192.0.2.17/24: more than 16"));
}

// What `ringway dataplane-args` prints: a flag a line, then its value.
static void a_file_of_arguments_stands_where_it_is_named(void)
{
	char path[] = "/tmp/ringway-options-XXXXXX", line[128];
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	fputs("# a node\n--port\nnet_null0\n\n--mtu\n1600\n", file);
	fclose(file);
	snprintf(line, sizeof(line), "--args %s --address 192.0.2.1/24", path);
	CU_ASSERT_EQUAL(parse(line), OPTIONS_RUN);
	CU_ASSERT_EQUAL(options.ports[0].mtu, 1600);
	CU_ASSERT_EQUAL(options.ports[0].address_count, 1);
	snprintf(line, sizeof(line), "--args=%s", path);
	CU_ASSERT_EQUAL(parse(line), OPTIONS_RUN);
	file = fopen(path, "w");
	fprintf(file, "--args\n%s\n", path);
	fclose(file);
	CU_ASSERT_EQUAL(parse(line), OPTIONS_BAD);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "names another file"));
	unlink(path);
}

static void a_replay_needs_no_port(void)
{
	CU_ASSERT_EQUAL_FATAL(
		parse("--replay in.pcap out.pcap --snapshot s.img --neighbour-mac 02:00:00:00:00:aa"),
		OPTIONS_RUN);
	CU_ASSERT_STRING_EQUAL(options.replay.input, "in.pcap");
	CU_ASSERT_STRING_EQUAL(options.replay.output, "out.pcap");
	CU_ASSERT_STRING_EQUAL(options.replay.snapshot, "s.img");
	CU_ASSERT_EQUAL(options.replay.neighbour_mac[5], 0xaa);
}

static const struct test_case cases[] = {
	{"a_full_line_is_read_as_written", a_full_line_is_read_as_written},
	{"what_is_not_said_has_the_defaults_of_the_help",
		what_is_not_said_has_the_defaults_of_the_help},
	{"every_mistake_names_the_flag_and_the_value", every_mistake_names_the_flag_and_the_value},
	{"limits_of_lists_are_checked", limits_of_lists_are_checked},
	{"a_file_of_arguments_stands_where_it_is_named",
		a_file_of_arguments_stands_where_it_is_named},
	{"a_replay_needs_no_port", a_replay_needs_no_port},
};

int main(void)
{
	int status = SUITE_RUN("options", cases);

	options_free(&options);
	return status;
}
