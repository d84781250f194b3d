// SPDX-License-Identifier: Apache-2.0
// node.yaml(5) and pools.yaml(5) from the descriptor tables that the reader itself is driven by.
#include "control/cli/help.h"

#include "control/config/tables.h"

#include <string.h>

static const char *type_text(const struct schema_field *field)
{
	switch (field->kind) {
	case SCHEMA_NUMBER:
	case SCHEMA_NUMBER64:
		return "number";
	case SCHEMA_NAME:
		return "name";
	case SCHEMA_SECONDS:
		return "time: 90, 90s, 15m, 2h";
	case SCHEMA_RATIO:
		return "decimal";
	case SCHEMA_SHARE:
		return "percentage";
	case SCHEMA_CHOICE:
		return "one of";
	case SCHEMA_ADDRESS:
		return "IP address";
	case SCHEMA_PREFIX:
		return "IP address, or prefix without host bits";
	case SCHEMA_LINK:
		return "IP address/bits";
	case SCHEMA_KEY16:
		return "32 hexadecimal digits";
	case SCHEMA_MAP:
		return "map";
	default:
		return "text";
	}
}

static void print_type(FILE *out, const struct schema_field *field)
{
	double scale = field->kind == SCHEMA_SHARE ? 1e4 : field->kind == SCHEMA_RATIO ? 1e6 : 1;

	fprintf(out, "\t%s", field->flags & SCHEMA_LIST ? "List; each: " : "");
	help_print_escaped(out, type_text(field));
	for (const struct schema_choice *c = field->choices;
		field->kind == SCHEMA_CHOICE && c->name != NULL; c++)
		fprintf(out, "%s*%s*", c == field->choices ? " " : ", ", c->name);
	if (field->kind != SCHEMA_CHOICE && field->max > 0)
		fprintf(out, ", %.10g to %.10g%s%s", (double)field->min / scale,
			(double)field->max / scale, field->unit ? " " : "",
			field->unit ? field->unit : "");
	if (field->flags & SCHEMA_LIST)
		fprintf(out, "; at most %u", field->items_max);
	if (field->flags & SCHEMA_REQUIRED) {
		fputs("; required", out);
	} else if (field->preset != NULL && !(field->flags & SCHEMA_OPTIONAL)) {
		fputs("; default ", out);
		help_print_escaped(out, field->preset[0] ? field->preset : "none");
	}
	fputs(field->flags & SCHEMA_RESTART ? "; a change needs a restart.\n\n" : ".\n\n", out);
}

static void print_map(FILE *out, const struct schema_map *map, const char *prefix)
{
	for (const struct schema_field *field = map->fields; field->name != NULL; field++) {
		bool list = field->kind == SCHEMA_MAP && (field->flags & SCHEMA_LIST);
		char path[256];

		snprintf(path, sizeof(path), "%s%s%s", prefix, field->name, list ? "[]" : "");
		fputc('*', out);
		help_print_escaped(out, path);
		fputs("*\n", out);
		print_type(out, field);
		if (field->text != NULL) {
			fputc('\t', out);
			help_print_escaped(out, field->text);
			fputs(".\n\n", out);
		}
		if (field->kind == SCHEMA_MAP) {
			strncat(path, ".", sizeof(path) - strlen(path) - 1);
			print_map(out, field->map, path);
		}
	}
}

static const struct {
	const char *name;
	const char *summary;
	const char *description;
	const struct schema_map *map;
	const char *example;
} pages[] = {
	{"node.yaml", "what one Ringway node is made of",
		"Read by *ringwayd*(8) at start; *ringway dataplane-args* makes the arguments of "
		"*ringway-dataplane*(8) from it.",
		&config_node_table,
		"node: lb-ams01-1\n"
		"datacenter: ams01\n"
		"store: {type: file, path: /var/lib/ringway}\n"
		"dataplane:\n"
		"  workers: [1, 2]\n"
		"  flow_entries: 1048576\n"
		"  ports:\n"
		"    - device: \"0000:3b:00.0\"\n"
		"      mtu: 1600\n"
		"      addresses: [192.0.2.10/24, \"2001:db8:1::10/64\"]\n"
		"      gateways: [192.0.2.1, \"2001:db8:1::1\"]\n"},
	{"pools.yaml", "what a Ringway node balances",
		"Applied while everything runs, all or nothing, by *ringway apply -f*. A file with an "
		"error changes nothing.",
		&config_pools_table,
		"pools:\n"
		"  - name: web\n"
		"    ring: {version: v2, points: 16}\n"
		"    backends:\n"
		"      - {name: web-1, address: 10.0.0.11, weight: 100, tags: [nvme, eu]}\n"
		"      - {name: web-2, address: 10.0.0.12, weight: 200, tags: [nvme]}\n"
		"services:\n"
		"  - name: https\n"
		"    address: 203.0.113.10\n"
		"    protocol: tcp\n"
		"    ports: [443]\n"
		"    pool: web\n"
		"    requires: [nvme]\n"
		"    tunnel: {type: gue}\n"},
};

bool help_man_config(FILE *out, const char *name)
{
	for (unsigned i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		if (strcmp(pages[i].name, name) != 0)
			continue;
		fprintf(out, "%s(5)\n\n# NAME\n\n%s - %s\n\n# DESCRIPTION\n\n%s\n\n", name, name,
			pages[i].summary, pages[i].description);
		fputs("The file is YAML, a strict part of it, or JSON. Unknown keys, wrong types and "
		      "ranges, and references to nothing are all reported at once, with line and "
		      "column. Not taken: anchors, aliases, tags, merge keys, several documents, a key "
		      "twice. Files of at most 32 MiB.\n\n# KEYS\n\n",
			out);
		print_map(out, pages[i].map, "");
		fprintf(out, "# EXAMPLE\n\n```\n%s```\n\n# SEE ALSO\n\n", pages[i].example);
		fputs("*ringway*(1), *ringwayd*(8), *ringway-dataplane*(8), *node.yaml*(5), "
		      "*pools.yaml*(5)\n",
			out);
		return true;
	}
	return false;
}
