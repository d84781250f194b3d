// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/packet_builder.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value & 0xffff);
}

static void put_mac(uint8_t *at, const char *text)
{
	unsigned b[6];
	int n = sscanf(text, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]);

	assert(n == 6);
	(void)n;
	for (unsigned i = 0; i < 6; i++)
		at[i] = (uint8_t)b[i];
}

static void put_address(uint8_t *at, int family, const char *text)
{
	int ok = inet_pton(family, text, at);

	assert(ok == 1);
	(void)ok;
}

static uint8_t *grow(struct frame *frame, unsigned bytes)
{
	uint8_t *at = frame->bytes + frame->length;

	assert(frame->length + bytes <= FRAME_BYTES_MAX);
	memset(at, 0, bytes);
	frame->length += bytes;
	return at;
}

// The header that follows says what it is in the field that announces it.
static void announce(struct frame *frame, unsigned type, unsigned protocol)
{
	if (frame->type_offset != 0)
		put16(frame->bytes + frame->type_offset, type);
	if (frame->protocol_offset != 0)
		frame->bytes[frame->protocol_offset] = (uint8_t)protocol;
	frame->type_offset = 0;
	frame->protocol_offset = 0;
}

static struct frame_layer *add_layer(struct frame *frame, enum frame_layer_kind kind)
{
	assert(frame->layer_count < FRAME_LAYERS_MAX);
	struct frame_layer *layer = &frame->layers[frame->layer_count++];

	*layer = (struct frame_layer){
		.kind = kind, .offset = frame->length, .network = frame->network};
	return layer;
}

void frame_start(struct frame *frame, const struct frame_ethernet *fields)
{
	frame->length = 0;
	frame->layer_count = 0;
	frame->network = 0;
	frame->protocol_offset = 0;
	uint8_t *at = grow(frame, 14);

	put_mac(at, fields->destination ? fields->destination : MAC_BALANCER);
	put_mac(at + 6, fields->source ? fields->source : MAC_ROUTER);
	put16(at + 12, fields->type_override);
	frame->type_offset = fields->type_override ? 0 : 12;
}

void frame_vlan(struct frame *frame, const struct frame_vlan *fields)
{
	announce(frame, fields->type ? fields->type : 0x8100, 0);
	put16(grow(frame, 4), fields->id);
	frame->type_offset = frame->length - 2;
}

void frame_ip4(struct frame *frame, const struct frame_ip4 *fields)
{
	announce(frame, 0x0800, 4);
	struct frame_layer *layer = add_layer(frame, FRAME_LAYER_IP4);
	unsigned header = 20 + fields->options_bytes;
	unsigned words = fields->header_words_override ? fields->header_words_override : header / 4;
	uint8_t *at = grow(frame, header);

	frame->network = frame->layer_count - 1;
	layer->keep_length = fields->total_length_override != 0;
	layer->bad_checksum = fields->bad_checksum;
	at[0] = (uint8_t)((fields->version_override ? fields->version_override : 4) << 4 | words);
	at[1] = (uint8_t)fields->tos;
	put16(at + 2, fields->total_length_override);
	put16(at + 4, fields->id);
	put16(at + 6,
		fields->fragment_offset / 8 | (fields->dont_fragment ? 0x4000u : 0) |
			(fields->more_fragments ? 0x2000u : 0));
	at[8] = (uint8_t)(fields->ttl_zero ? 0 : fields->ttl ? fields->ttl : 64);
	at[9] = (uint8_t)fields->protocol_override;
	put_address(at + 12, AF_INET, fields->source ? fields->source : "198.51.100.7");
	put_address(at + 16, AF_INET, fields->destination ? fields->destination : "203.0.113.10");
	memset(at + 20, 1, fields->options_bytes);
	frame->protocol_offset = fields->protocol_override ? 0 : layer->offset + 9;
}

void frame_ip6(struct frame *frame, const struct frame_ip6 *fields)
{
	announce(frame, 0x86dd, 41);
	struct frame_layer *layer = add_layer(frame, FRAME_LAYER_IP6);
	uint8_t *at = grow(frame, 40);
	unsigned version = fields->version_override ? fields->version_override : 6;

	frame->network = frame->layer_count - 1;
	layer->keep_length = fields->payload_length_override != 0 || fields->payload_length_zero;
	put32(at, version << 28 | fields->traffic_class << 20 | fields->flow_label);
	put16(at + 4, fields->payload_length_override);
	at[6] = (uint8_t)fields->next_header_override;
	at[7] = (uint8_t)(fields->hop_limit_zero ? 0 : fields->hop_limit ? fields->hop_limit : 64);
	put_address(at + 8, AF_INET6, fields->source ? fields->source : "2001:db8:c::7");
	put_address(
		at + 24, AF_INET6, fields->destination ? fields->destination : "2001:db8:5::10");
	frame->protocol_offset = fields->next_header_override ? 0 : layer->offset + 6;
}

void frame_extension(struct frame *frame, const struct frame_extension *fields)
{
	announce(frame, 0, fields->kind);
	unsigned natural = fields->kind == 51 ? (fields->units + 2) * 4 : (fields->units + 1) * 8;
	unsigned offset = frame->length;
	uint8_t *at = grow(frame, fields->bytes ? fields->bytes : natural);

	at[0] = 59;
	at[1] = (uint8_t)fields->units;
	memcpy(at + 2, fields->body, sizeof(fields->body));
	frame->protocol_offset = offset;
}

void frame_fragment6(struct frame *frame, const struct frame_fragment6 *fields)
{
	announce(frame, 0, 44);
	unsigned offset = frame->length;
	uint8_t *at = grow(frame, 8);

	at[0] = (uint8_t)fields->next_header_override;
	put16(at + 2, fields->offset | fields->more);
	put32(at + 4, fields->id);
	frame->protocol_offset = fields->next_header_override ? 0 : offset;
}

void frame_tcp(struct frame *frame, const struct frame_tcp *fields)
{
	announce(frame, 0, 6);
	add_layer(frame, FRAME_LAYER_TCP);
	unsigned header = 20 + fields->options_bytes;
	unsigned words = fields->header_words_override ? fields->header_words_override : header / 4;
	uint8_t *at = grow(frame, header);

	put16(at, fields->source_port ? fields->source_port : 40000);
	put16(at + 2, fields->destination_port ? fields->destination_port : 443);
	put32(at + 4, fields->sequence);
	at[12] = (uint8_t)(words << 4);
	at[13] = (uint8_t)fields->flags;
	put16(at + 14, 65535);
	memset(at + 20, 1, fields->options_bytes);
}

void frame_udp(struct frame *frame, const struct frame_udp *fields)
{
	announce(frame, 0, 17);
	struct frame_layer *layer = add_layer(frame, FRAME_LAYER_UDP);
	uint8_t *at = grow(frame, 8);

	layer->keep_length = fields->length_override != 0 || fields->length_zero;
	layer->keep_checksum = fields->no_checksum;
	put16(at, fields->source_port ? fields->source_port : 40000);
	put16(at + 2, fields->destination_port ? fields->destination_port : 443);
	put16(at + 4, fields->length_override);
}

static void add_icmp(
	struct frame *frame, const struct frame_icmp *fields, enum frame_layer_kind kind)
{
	struct frame_layer *layer = add_layer(frame, kind);
	uint8_t *at = grow(frame, 8);

	layer->bad_checksum = fields->bad_checksum;
	at[0] = (uint8_t)fields->type;
	at[1] = (uint8_t)fields->code;
	put16(at + 4, fields->word0);
	put16(at + 6, fields->word1);
}

void frame_icmp4(struct frame *frame, const struct frame_icmp *fields)
{
	announce(frame, 0, 1);
	add_icmp(frame, fields, FRAME_LAYER_ICMP4);
}

void frame_icmp6(struct frame *frame, const struct frame_icmp *fields)
{
	announce(frame, 0, 58);
	add_icmp(frame, fields, FRAME_LAYER_ICMP6);
}

void frame_arp(struct frame *frame, const struct frame_arp *fields)
{
	announce(frame, 0x0806, 0);
	uint8_t *at = grow(frame, 28);

	put16(at, 1);
	put16(at + 2, 0x0800);
	at[4] = 6;
	at[5] = 4;
	put16(at + 6, fields->operation ? fields->operation : 1);
	put_mac(at + 8, fields->sender_mac ? fields->sender_mac : MAC_ROUTER);
	put_address(at + 14, AF_INET, fields->sender ? fields->sender : "192.0.2.1");
	put_mac(at + 18, fields->target_mac ? fields->target_mac : "00:00:00:00:00:00");
	put_address(at + 24, AF_INET, fields->target ? fields->target : "192.0.2.10");
}

void frame_nd(struct frame *frame, const struct frame_nd *fields)
{
	announce(frame, 0, 58);
	struct frame_layer *layer = add_layer(frame, FRAME_LAYER_ICMP6);
	uint8_t *at = grow(frame, 24);

	layer->bad_checksum = fields->bad_checksum;
	at[0] = (uint8_t)(fields->type ? fields->type : 135);
	at[1] = (uint8_t)fields->code;
	put32(at + 4, fields->flags);
	put_address(at + 8, AF_INET6, fields->target ? fields->target : "2001:db8:1::10");
	if (fields->option != 0) {
		at = grow(frame, 8);
		at[0] = (uint8_t)fields->option;
		at[1] = 1;
		put_mac(at + 2, fields->option_mac ? fields->option_mac : MAC_ROUTER);
	}
}

void frame_gue(struct frame *frame, unsigned protocol)
{
	announce(frame, 0, 0);
	grow(frame, 4)[1] = (uint8_t)protocol;
}

void frame_gre(struct frame *frame, unsigned type)
{
	announce(frame, 0, 47);
	put16(grow(frame, 4) + 2, type);
}

void frame_payload(struct frame *frame, const void *bytes, unsigned length)
{
	memcpy(grow(frame, length), bytes, length);
}

void frame_fill(struct frame *frame, unsigned length, uint8_t first)
{
	uint8_t *at = grow(frame, length);

	for (unsigned i = 0; i < length; i++)
		at[i] = (uint8_t)(first + i);
}

// RFC 1071 section 1, word by word as the text says.
static uint32_t sum_bytes(uint32_t sum, const uint8_t *bytes, unsigned length)
{
	for (unsigned i = 0; i < length; i++) {
		sum += i % 2 ? bytes[i] : (unsigned)bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static uint32_t sum_pseudo(
	const struct frame *frame, const struct frame_layer *layer, unsigned protocol)
{
	const struct frame_layer *network = &frame->layers[layer->network];
	const uint8_t *at = frame->bytes + network->offset;
	uint32_t sum = sum_bytes(0, at + (network->kind == FRAME_LAYER_IP4 ? 12 : 8),
		network->kind == FRAME_LAYER_IP4 ? 8 : 32);
	uint8_t tail[4] = {0, (uint8_t)protocol};

	put16(tail + 2, frame->length - layer->offset);
	return sum_bytes(sum, tail, sizeof(tail));
}

static void finish_layer(struct frame *frame, const struct frame_layer *layer)
{
	static const struct {
		unsigned length, length_less, checksum, protocol;
	} rules[] = {
		[FRAME_LAYER_IP4] = {2, 0, 10, 0},
		[FRAME_LAYER_IP6] = {4, 40, 0, 0},
		[FRAME_LAYER_UDP] = {4, 0, 6, 17},
		[FRAME_LAYER_TCP] = {0, 0, 16, 6},
		[FRAME_LAYER_ICMP4] = {0, 0, 2, 0},
		[FRAME_LAYER_ICMP6] = {0, 0, 2, 58},
	};
	uint8_t *at = frame->bytes + layer->offset;
	unsigned length = frame->length - layer->offset;
	unsigned summed = layer->kind == FRAME_LAYER_IP4 ? (at[0] & 0xfu) * 4 : length;
	unsigned checksum = rules[layer->kind].checksum;

	if (rules[layer->kind].length && !layer->keep_length)
		put16(at + rules[layer->kind].length, length - rules[layer->kind].length_less);
	if (checksum == 0 || layer->keep_checksum)
		return;
	if (summed > length)
		summed = length;
	put16(at + checksum, 0);
	uint32_t sum = rules[layer->kind].protocol
		? sum_pseudo(frame, layer, rules[layer->kind].protocol)
		: 0;

	sum = ~sum_bytes(sum, at, summed) & 0xffff;
	put16(at + checksum, sum ^ (layer->bad_checksum ? 0x5555 : 0));
}

void frame_finish(struct frame *frame)
{
	for (unsigned i = frame->layer_count; i > 0; i--)
		finish_layer(frame, &frame->layers[i - 1]);
}

static void load(struct packet *packet, const uint8_t *bytes, unsigned length, unsigned headroom,
	unsigned tailroom)
{
	// One byte more than nothing, so that an empty frame has an address too; it is in front.
	unsigned front = headroom ? headroom : 1;
	uint8_t *block = malloc(front + length + tailroom);

	assert(block != NULL);
	memset(block, 0xa5, front + length + tailroom);
	memcpy(block + front, bytes, length);
	memset(packet, 0xcc, sizeof(*packet));
	packet->handle = block;
	packet->data = block + front;
	packet->length = length;
	packet->headroom = (uint16_t)headroom;
	packet->tailroom = (uint16_t)tailroom;
	packet->port_in = 0;
}

void packet_load(
	struct packet *packet, const struct frame *frame, unsigned headroom, unsigned tailroom)
{
	load(packet, frame->bytes, frame->length, headroom, tailroom);
}

void packet_load_cut(struct packet *packet, const struct frame *frame, unsigned length)
{
	load(packet, frame->bytes, length, 0, 0);
}

void packet_unload(struct packet *packet)
{
	free(packet->handle);
	packet->handle = NULL;
}

static void print_bytes(const char *what, const uint8_t *bytes, unsigned from, unsigned length)
{
	printf("# %s [%u..]:", what, from);
	for (unsigned i = from; i < length && i < from + 48; i++)
		printf("%s%02x", i % 4 ? "" : " ", bytes[i]);
	printf("\n");
}

bool packet_equals(const struct packet *packet, const struct frame *expected)
{
	unsigned shorter = packet->length < expected->length ? packet->length : expected->length;
	unsigned i = 0;

	while (i < shorter && packet->data[i] == expected->bytes[i])
		i++;
	if (i == packet->length && i == expected->length)
		return true;
	printf("# %u bytes, expected %u; byte %u is the first to differ\n", packet->length,
		expected->length, i);
	print_bytes("seen", packet->data, i & ~3u, packet->length);
	print_bytes("expected", expected->bytes, i & ~3u, expected->length);
	return false;
}
