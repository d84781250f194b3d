// SPDX-License-Identifier: Apache-2.0
#include "control/config/config.h"
#include "control/config/schema.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MILLION 1000000u

size_t schema_item_size(const struct schema_field *field)
{
	switch (field->kind) {
	case SCHEMA_TEXT:
	case SCHEMA_NAME:
		return sizeof(char *);
	case SCHEMA_NUMBER64:
		return sizeof(uint64_t);
	case SCHEMA_ADDRESS:
		return sizeof(struct ip_addr);
	case SCHEMA_PREFIX:
	case SCHEMA_LINK:
		return sizeof(struct config_prefix);
	case SCHEMA_KEY16:
		return 16;
	case SCHEMA_MAP:
		return field->map->size;
	default:
		return sizeof(uint32_t);
	}
}

__attribute__((format(printf, 3, 4))) static int refuse(
	struct schema_refusal *refusal, enum config_code code, const char *format, ...)
{
	va_list args;

	refusal->code = code;
	va_start(args, format);
	vsnprintf(refusal->text, sizeof(refusal->text), format, args);
	va_end(args);
	return -EINVAL;
}

// Digits only: no sign, no spaces, no other base. Returns false past 64 bits, too.
static bool digits_parse(const char *text, size_t length, uint64_t *ret)
{
	uint64_t value = 0;

	if (length == 0 || length > 20)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, 10u, &value) ||
			__builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return false;
	}
	*ret = value;
	return true;
}

// A decimal number as millionths: at most six digits after the point.
static bool decimal_parse(const char *text, size_t length, uint64_t scale, uint64_t *ret)
{
	const char *point = memchr(text, '.', length);
	size_t whole_length = point == NULL ? length : (size_t)(point - text);
	size_t fraction_length = point == NULL ? 0 : length - whole_length - 1;
	uint64_t whole, fraction = 0;

	if (!digits_parse(text, whole_length, &whole) || whole > MILLION)
		return false;
	if (point != NULL && !digits_parse(point + 1, fraction_length, &fraction))
		return false;
	whole *= scale;
	for (size_t i = 0; i < fraction_length; i++) {
		if (scale % 10 != 0)
			return false;
		scale /= 10;
	}
	*ret = whole + fraction * scale;
	return true;
}

static int range_check(const struct schema_field *field, const char *text, uint64_t value,
	struct schema_refusal *refusal)
{
	char least[32], most[32];
	const char *unit = "";
	uint64_t scale = 1;

	if (value >= field->min && value <= field->max)
		return 0;
	if (field->kind == SCHEMA_SHARE) {
		scale = MILLION / 100;
		unit = "%";
	} else if (field->kind == SCHEMA_RATIO) {
		scale = MILLION;
	} else if (field->kind == SCHEMA_SECONDS) {
		unit = "s";
	}
	snprintf(least, sizeof(least), "%.6g%s", (double)field->min / (double)scale, unit);
	snprintf(most, sizeof(most), "%.12g%s", (double)field->max / (double)scale, unit);
	return refuse(refusal, CONFIG_OUT_OF_RANGE, "%s is out of range %s..%s", text, least, most);
}

static int number_parse(const struct schema_field *field, const char *text, void *ret,
	struct schema_refusal *refusal)
{
	uint64_t value;
	uint32_t narrow;
	int rc;

	if (!digits_parse(text, strlen(text), &value)) {
		size_t digits = strspn(text, "0123456789");

		if (digits > 0 && text[digits] == '\0')
			value = UINT64_MAX; // too long a number is out of range, not "no number"
		else
			return refuse(
				refusal, CONFIG_BAD_VALUE, "\"%.64s\" is no whole number", text);
	}
	rc = range_check(field, text, value, refusal);
	if (rc < 0)
		return rc;
	narrow = (uint32_t)value;
	if (field->kind == SCHEMA_NUMBER64)
		memcpy(ret, &value, sizeof(value));
	else
		memcpy(ret, &narrow, sizeof(narrow));
	return 0;
}

static int seconds_parse(const struct schema_field *field, const char *text, void *ret,
	struct schema_refusal *refusal)
{
	static const struct {
		char suffix;
		uint64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
	size_t length = strlen(text);
	uint64_t value, unit = 1;
	uint32_t narrow;
	int rc;

	for (size_t i = 0; length > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
		if (text[length - 1] == units[i].suffix) {
			unit = units[i].seconds;
			length--;
			break;
		}
	}
	if (!digits_parse(text, length, &value) || value > UINT32_MAX)
		return refuse(refusal, CONFIG_BAD_VALUE,
			"\"%.64s\" is no time: write 90, 90s, 15m or 2h", text);
	rc = range_check(field, text, value * unit, refusal);
	if (rc < 0)
		return rc;
	narrow = (uint32_t)(value * unit);
	memcpy(ret, &narrow, sizeof(narrow));
	return 0;
}

static int millionths_parse(const struct schema_field *field, const char *text, void *ret,
	struct schema_refusal *refusal)
{
	bool percent = field->kind == SCHEMA_SHARE;
	size_t length = strlen(text);
	uint64_t value;
	uint32_t narrow;
	int rc;

	if (percent && length > 0 && text[length - 1] == '%')
		length--;
	else if (percent)
		return refuse(refusal, CONFIG_BAD_VALUE,
			"\"%.64s\" is no share: write a percentage such as 10%% or 0.5%%", text);
	if (!decimal_parse(text, length, percent ? MILLION / 100 : MILLION, &value))
		return refuse(refusal, CONFIG_BAD_VALUE,
			percent ? "\"%.64s\" is no percentage with at most 4 decimals"
				: "\"%.64s\" is no decimal number with at most 6 decimals",
			text);
	rc = range_check(field, text, value, refusal);
	if (rc < 0)
		return rc;
	narrow = (uint32_t)value;
	memcpy(ret, &narrow, sizeof(narrow));
	return 0;
}

static int choice_parse(const struct schema_field *field, const char *text, void *ret,
	struct schema_refusal *refusal)
{
	char words[160] = "";
	size_t used = 0;

	for (const struct schema_choice *c = field->choices; c->name != NULL; c++) {
		if (strcmp(c->name, text) == 0) {
			memcpy(ret, &c->value, sizeof(c->value));
			return 0;
		}
		used += (size_t)snprintf(
			words + used, sizeof(words) - used, "%s%s", used == 0 ? "" : ", ", c->name);
		if (used >= sizeof(words))
			used = sizeof(words) - 1;
	}
	return refuse(refusal, CONFIG_BAD_CHOICE, "\"%.32s\" is none of: %s", text, words);
}

static int address_parse(const char *text, void *ret, struct schema_refusal *refusal)
{
	struct ip_addr address;

	if (addr_parse(text, &address) < 0)
		return refuse(
			refusal, CONFIG_BAD_VALUE, "\"%.64s\" is no IPv4 or IPv6 address", text);
	memcpy(ret, &address, sizeof(address));
	return 0;
}

static bool has_host_bits(const struct ip_addr *address, uint32_t bits)
{
	uint32_t width = address->family == ADDR_V4 ? 32 : 128;

	for (uint32_t bit = bits; bit < width; bit++) {
		if (address->bytes[bit / 8] & (0x80u >> (bit % 8)))
			return true;
	}
	return false;
}

static int prefix_parse(const struct schema_field *field, const char *text, void *ret,
	struct schema_refusal *refusal)
{
	const char *slash = strchr(text, '/');
	size_t length = slash == NULL ? strlen(text) : (size_t)(slash - text);
	struct config_prefix prefix = {0};
	char address[ADDR_TEXT_BYTES];
	uint64_t bits;

	if (length >= sizeof(address))
		return refuse(refusal, CONFIG_BAD_VALUE, "\"%.64s\" is no address", text);
	memcpy(address, text, length);
	address[length] = '\0';
	if (addr_parse(address, &prefix.address) < 0)
		return refuse(refusal, CONFIG_BAD_VALUE,
			"\"%.64s\" is no IPv4 or IPv6 address or prefix", text);
	prefix.bits = prefix.address.family == ADDR_V4 ? 32 : 128;
	if (slash == NULL && field->kind == SCHEMA_LINK)
		return refuse(refusal, CONFIG_BAD_VALUE,
			"\"%.64s\" has no prefix length, such as %s/%d", text, text,
			prefix.bits == 32 ? 24 : 64);
	if (slash != NULL) {
		if (!digits_parse(slash + 1, strlen(slash + 1), &bits) || bits > prefix.bits)
			return refuse(refusal, CONFIG_OUT_OF_RANGE,
				"prefix length of \"%.64s\" is out of range 0..%u", text,
				prefix.bits);
		prefix.bits = (uint32_t)bits;
	}
	if (field->kind == SCHEMA_PREFIX && has_host_bits(&prefix.address, prefix.bits))
		return refuse(refusal, CONFIG_BAD_VALUE,
			"\"%.64s\" has bits set beyond its prefix length", text);
	memcpy(ret, &prefix, sizeof(prefix));
	return 0;
}

static int key16_parse(const char *text, uint8_t *ret, struct schema_refusal *refusal)
{
	uint8_t key[16];

	if (strlen(text) != 32 || strspn(text, "0123456789abcdefABCDEF") != 32)
		return refuse(refusal, CONFIG_BAD_VALUE, "is not 32 hexadecimal digits");
	for (unsigned i = 0; i < sizeof(key); i++) {
		const char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};

		key[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	memcpy(ret, key, sizeof(key));
	return 0;
}

static int text_parse(const struct schema_field *field, const char *text, struct arena *arena,
	void *ret, struct schema_refusal *refusal)
{
	size_t length = strlen(text);
	char *copy;

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c == 0x7f)
			return refuse(refusal, CONFIG_BAD_VALUE, "holds a control character");
		if (field->kind == SCHEMA_NAME && !isalnum(c) &&
			(i == 0 || strchr("._-", c) == NULL))
			return refuse(refusal, CONFIG_BAD_VALUE,
				"\"%.64s\" is no name: letters, digits, '.', '_' and '-', "
				"beginning with a letter or digit",
				text);
	}
	if (field->kind == SCHEMA_NAME && (length == 0 || length >= CONFIG_NAME_BYTES))
		return refuse(refusal, CONFIG_OUT_OF_RANGE, "has %zu characters; names have 1..%u",
			length, CONFIG_NAME_BYTES - 1);
	copy = arena_text(arena, text, length);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(ret, &copy, sizeof(copy));
	return 0;
}

int schema_value_parse(const struct schema_field *field, const char *text, struct arena *arena,
	void *ret, struct schema_refusal *ret_refusal)
{
	switch (field->kind) {
	case SCHEMA_TEXT:
	case SCHEMA_NAME:
		return text_parse(field, text, arena, ret, ret_refusal);
	case SCHEMA_NUMBER:
	case SCHEMA_NUMBER64:
		return number_parse(field, text, ret, ret_refusal);
	case SCHEMA_SECONDS:
		return seconds_parse(field, text, ret, ret_refusal);
	case SCHEMA_RATIO:
	case SCHEMA_SHARE:
		return millionths_parse(field, text, ret, ret_refusal);
	case SCHEMA_CHOICE:
		return choice_parse(field, text, ret, ret_refusal);
	case SCHEMA_ADDRESS:
		return address_parse(text, ret, ret_refusal);
	case SCHEMA_PREFIX:
	case SCHEMA_LINK:
		return prefix_parse(field, text, ret, ret_refusal);
	case SCHEMA_KEY16:
		return key16_parse(text, ret, ret_refusal);
	default:
		return refuse(ret_refusal, CONFIG_WRONG_KIND, "must be a map");
	}
}

const char *schema_choice_name(const struct schema_choice *choices, uint32_t value)
{
	for (; choices->name != NULL; choices++) {
		if (choices->value == value)
			return choices->name;
	}
	return "?";
}

// Writes millionths without trailing zeros: 0.01, 12.5, 100.
static void decimal_format(uint32_t value, uint32_t scale, const char *suffix, char *buffer)
{
	int decimals = 0;
	int used;

	for (uint32_t s = scale; s > 1; s /= 10)
		decimals++;
	used = snprintf(buffer, 32, "%u.%0*u", value / scale, decimals, value % scale);
	while (buffer[used - 1] == '0')
		used--;
	if (buffer[used - 1] == '.')
		used--;
	snprintf(buffer + used, 32 - (size_t)used, "%s", suffix);
}

static void prefix_format(const struct config_prefix *prefix, bool always, char *buffer)
{
	uint32_t all = prefix->address.family == ADDR_V4 ? 32 : 128;
	size_t length;

	buffer[0] = '\0';
	if (prefix->address.family == ADDR_NONE)
		return;
	length = addr_format(&prefix->address, buffer);
	if (always || prefix->bits != all)
		snprintf(buffer + length, 8, "/%u", prefix->bits);
}

const char *schema_value_format(
	const struct schema_field *field, const void *value, char buffer[static SCHEMA_TEXT_BYTES])
{
	const char *text;
	uint64_t wide;
	uint32_t number = 0;

	if (schema_item_size(field) == sizeof(number))
		memcpy(&number, value, sizeof(number));
	switch (field->kind) {
	case SCHEMA_TEXT:
	case SCHEMA_NAME:
		memcpy(&text, value, sizeof(text));
		return text != NULL ? text : "";
	case SCHEMA_NUMBER64:
		memcpy(&wide, value, sizeof(wide));
		snprintf(buffer, SCHEMA_TEXT_BYTES, "%llu", (unsigned long long)wide);
		break;
	case SCHEMA_RATIO:
		decimal_format(number, MILLION, "", buffer);
		break;
	case SCHEMA_SHARE:
		decimal_format(number, MILLION / 100, "%", buffer);
		break;
	case SCHEMA_CHOICE:
		return schema_choice_name(field->choices, number);
	case SCHEMA_ADDRESS:
		buffer[0] = '\0';
		if (((const struct ip_addr *)value)->family != ADDR_NONE)
			addr_format(value, buffer);
		break;
	case SCHEMA_PREFIX:
	case SCHEMA_LINK:
		prefix_format(value, field->kind == SCHEMA_LINK, buffer);
		break;
	case SCHEMA_KEY16:
		for (unsigned i = 0; i < 16; i++)
			snprintf(buffer + 2 * i, 3, "%02x", ((const uint8_t *)value)[i]);
		break;
	default:
		snprintf(buffer, SCHEMA_TEXT_BYTES, "%u", number);
		break;
	}
	return buffer;
}

// Words and numbers that some reader of YAML would take for something else than text are quoted.
bool schema_text_is_plain(const char *text)
{
	static const char *const words[] = {
		"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"};
	size_t length = strlen(text);

	if (length == 0 || !isalpha((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)text[i]) && strchr("._/-", text[i]) == NULL)
			return false;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0)
			return false;
	}
	return true;
}
