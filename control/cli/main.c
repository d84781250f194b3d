// SPDX-License-Identifier: Apache-2.0
#include "control/cli/cli.h"

#include <locale.h>
#include <signal.h>

int main(int argc, char **argv)
{
	// Numbers are written the same way everywhere; only the width of characters follows the locale.
	setlocale(LC_CTYPE, "");
	// `ringway ... | head` ends with an error of write(), not with a signal.
	signal(SIGPIPE, SIG_IGN);
	return cli_main(argc, argv, stdout, stderr);
}
