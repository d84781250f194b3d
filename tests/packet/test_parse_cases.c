// SPDX-License-Identifier: Apache-2.0
// Runs the parse cases: as they are, cut at every length, and with every byte changed.
#include "dataplane/packet/parse.h"

#include "tests/lib/packet_check.h"
#include "tests/lib/suite.h"
#include "tests/packet/parse_cases.h"

#include <stdio.h>

static struct frame frame;

static void build(const struct parse_case *each)
{
	each->build(&frame);
	frame_finish(&frame);
}

static void check(const struct parse_case *each)
{
	struct packet packet;

	build(each);
	packet_load(&packet, &frame, 0, 0);
	parse_burst(&packet, 1);
	const char *rule = packet_broken_rule(&packet);
	bool good = packet.verdict == each->verdict && rule == NULL &&
		packet_equals(&packet, &frame) &&
		(packet.verdict == PACKET_DROP ? packet.reason == each->reason
					       : packet.flags == each->flags);

	if (!good) {
		printf("# %s: verdict %u (expected %u), reason %s (expected %s), flags %#x (expected %#x)%s%s\n",
			each->description, packet.verdict, each->verdict,
			packet.reason < DROP_COUNT ? stats_drop_name(packet.reason) : "none",
			stats_drop_name(each->reason), packet.flags, each->flags,
			rule ? "; broken: " : "", rule ? rule : "");
	}
	CU_ASSERT(good);
	packet_unload(&packet);
}

static void good_frames_pass(void)
{
	for (unsigned i = 0; i < parse_good_count; i++)
		check(&parse_good_cases[i]);
}

static void bad_frames_are_dropped_for_their_reason(void)
{
	for (unsigned i = 0; i < parse_bad_count; i++)
		check(&parse_bad_cases[i]);
}

static void every_reason_of_the_stage_has_a_case(void)
{
	for (unsigned reason = 0; reason < DROP_COUNT; reason++) {
		bool found = strcmp(stats_drop_stage(reason), "parse") != 0;

		for (unsigned i = 0; i < parse_bad_count; i++)
			found |= parse_bad_cases[i].reason == reason;
		if (!found)
			printf("# no case for %s\n", stats_drop_name(reason));
		CU_ASSERT(found);
	}
}

// Where a good frame ends: behind its IP packet or ARP; padding may be missing.
static unsigned content_end(void)
{
	struct packet packet;

	packet_load(&packet, &frame, 0, 0);
	parse_burst(&packet, 1);
	unsigned end = packet.l3_offset + packet.l3_length;

	packet_unload(&packet);
	return end;
}

static void good_frames_cut_at_every_length_are_dropped(void)
{
	for (unsigned i = 0; i < parse_good_count; i++) {
		struct packet packet;

		if (parse_good_cases[i].verdict == PACKET_PUNT)
			continue;
		build(&parse_good_cases[i]);
		unsigned end = content_end();

		for (unsigned length = 0; length < end; length++) {
			packet_load_cut(&packet, &frame, length);
			parse_burst(&packet, 1);
			if (packet.verdict != PACKET_DROP) {
				printf("# %s, cut to %u bytes\n", parse_good_cases[i].description,
					length);
				CU_FAIL("not dropped");
			}
			packet_unload(&packet);
		}
	}
}

// The checksum of IPv4 would hide what lies behind it, so it is made right again after each change.
static void seal_ip4(uint8_t *bytes, unsigned l3_offset, unsigned length)
{
	uint8_t *ip = bytes + l3_offset;
	unsigned header = (ip[0] & 0xfu) * 4;
	uint32_t sum = 0;

	if (header < 20 || l3_offset + header > length)
		return;
	ip[10] = ip[11] = 0;
	for (unsigned i = 0; i < header; i += 2)
		sum += (unsigned)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void change_byte(struct packet *packet, unsigned at, uint8_t value)
{
	uint8_t was = frame.bytes[at];
	uint8_t checksum[2];
	bool is_ip4 = frame.bytes[12] == 0x08 && frame.bytes[13] == 0x00 && frame.length >= 34;

	memcpy(checksum, frame.bytes + 24, 2);
	frame.bytes[at] = value;
	if (is_ip4)
		seal_ip4(frame.bytes, 14, frame.length);
	packet_load_cut(packet, &frame, frame.length);
	frame.bytes[at] = was;
	if (is_ip4)
		memcpy(frame.bytes + 24, checksum, 2);
}

static void no_changed_byte_breaks_a_rule(void)
{
	static const uint8_t masks[] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff};

	for (unsigned i = 0; i < parse_good_count; i++) {
		build(&parse_good_cases[i]);
		for (unsigned n = 0; n < frame.length * sizeof(masks); n++) {
			unsigned at = n / sizeof(masks);
			struct packet packet;

			change_byte(&packet, at, frame.bytes[at] ^ masks[n % sizeof(masks)]);
			parse_burst(&packet, 1);
			const char *rule = packet_broken_rule(&packet);

			if (rule != NULL) {
				printf("# %s, byte %u: %s\n", parse_good_cases[i].description, at,
					rule);
				CU_FAIL("rule broken");
			}
			packet_unload(&packet);
		}
	}
}

static void a_burst_is_parsed_like_single_packets(void)
{
	struct packet packets[PACKET_BURST];
	unsigned all = parse_good_count + parse_bad_count;

	for (unsigned first = 0; first < all; first += PACKET_BURST) {
		unsigned count = all - first < PACKET_BURST ? all - first : PACKET_BURST;

		for (unsigned i = 0; i < count; i++) {
			unsigned n = first + i;

			build(n < parse_good_count ? &parse_good_cases[n]
						   : &parse_bad_cases[n - parse_good_count]);
			packet_load(&packets[i], &frame, 0, 0);
		}
		parse_burst(packets, count);
		for (unsigned i = 0; i < count; i++) {
			unsigned n = first + i;

			CU_ASSERT_EQUAL(packets[i].verdict,
				n < parse_good_count
					? parse_good_cases[n].verdict
					: parse_bad_cases[n - parse_good_count].verdict);
			packet_unload(&packets[i]);
		}
	}
}

static const struct test_case cases[] = {
	SUITE_CASE(good_frames_pass),
	SUITE_CASE(bad_frames_are_dropped_for_their_reason),
	SUITE_CASE(every_reason_of_the_stage_has_a_case),
	SUITE_CASE(good_frames_cut_at_every_length_are_dropped),
	SUITE_CASE(no_changed_byte_breaks_a_rule),
	SUITE_CASE(a_burst_is_parsed_like_single_packets),
};

int main(void)
{
	return SUITE_RUN("parse cases", cases);
}
