// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request line of ringwayd: a request that passes is whole and bounded; one that does not says why.
#include "control/cli/protocol.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct protocol_request request;
	char error[256] = "";

	if (protocol_request_parse((const char *)data, size, &request, error) != 0) {
		if (error[0] == '\0' || request.args != NULL)
			abort();
		return 0;
	}
	if (!json_is_object(request.args) || request.verb[0] == '\0' ||
		strlen(request.verb) >= sizeof(request.verb) ||
		strlen(request.reason) >= sizeof(request.reason))
		abort();
	protocol_request_clear(&request);
	return 0;
}
