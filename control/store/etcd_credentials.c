// SPDX-License-Identifier: Apache-2.0
#include "control/store/etcd_credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DATE_BYTES 16

// --- files -----------------------------------------------------------------------------------------

// Opens a file that a key of the configuration names. Returns a descriptor or -errno.
static int file_open(const char *key, const char *path, bool secret, char *error, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0) {
		int rc = -errno;

		snprintf(error, bytes, "%s: cannot read %s: %s", key, path, strerror(-rc));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	unsigned open_bits = status.st_uid == 0 ? 027 : 077;

	if (!secret || (status.st_mode & open_bits) == 0)
		return fd;
	snprintf(error, bytes, "%s: %s is of mode %04o, others could use it: chmod 0400 %s", key,
		path, (unsigned)status.st_mode & 07777, path);
	close(fd);
	return -EPERM;
}

int etcd_credentials_check(const struct config_store *config, char *ret_error, size_t bytes)
{
	const struct {
		const char *key, *path;
		bool secret;
	} files[] = {
		{"store.tls.ca", config->tls.ca, false},
		{"store.tls.certificate", config->tls.certificate, false},
		{"store.tls.key", config->tls.key, true},
		{"store.password_file", config->password_file, true},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (files[i].path[0] == '\0')
			continue;
		int fd = file_open(files[i].key, files[i].path, files[i].secret, ret_error, bytes);

		if (fd < 0)
			return fd;
		close(fd);
	}
	return 0;
}

int etcd_password_read(const struct config_store *config, char ret[static ETCD_PASSWORD_BYTES],
	char *ret_error, size_t bytes)
{
	int fd = file_open("store.password_file", config->password_file, true, ret_error, bytes);
	ssize_t length = fd < 0 ? 0 : read(fd, ret, ETCD_PASSWORD_BYTES - 1);

	if (fd < 0)
		return -EACCES;
	close(fd);
	ret[length > 0 ? length : 0] = '\0';
	ret[strcspn(ret, "\r\n")] = '\0';
	if (ret[0] != '\0')
		return 0;
	snprintf(ret_error, bytes, "store.password_file: %s has no password in its first line",
		config->password_file);
	return -EACCES;
}

// --- connections -----------------------------------------------------------------------------------

void etcd_credentials_use(const struct config_tls *tls, CURL *curl)
{
	if (tls->ca[0] != '\0') {
		curl_easy_setopt(curl, CURLOPT_CAINFO, tls->ca);
		// Else the system's directory of authorities would be trusted beside it.
		curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	}
	if (tls->certificate[0] != '\0')
		curl_easy_setopt(curl, CURLOPT_SSLCERT, tls->certificate);
	if (tls->key[0] != '\0')
		curl_easy_setopt(curl, CURLOPT_SSLKEY, tls->key);
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

// The day on which a certificate ended. Returns false while it has not, or nobody can tell.
static bool has_expired(const char *path, char ret_date[static DATE_BYTES])
{
	FILE *file = path[0] != '\0' ? fopen(path, "re") : NULL;
	X509 *certificate = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
	struct tm end;
	bool expired = certificate != NULL &&
		X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0 &&
		ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1;

	if (expired)
		strftime(ret_date, DATE_BYTES, "%Y-%m-%d", &end);
	X509_free(certificate);
	if (file != NULL)
		fclose(file);
	return expired;
}

// libcurl and OpenSSL tell long stories; the first line is theirs, and of a chain of errors the last part says it.
static const char *gist(const struct etcd_failure *failure)
{
	const char *words =
		failure->detail[0] != '\0' ? failure->detail : curl_easy_strerror(failure->code);
	const char *alert = strstr(words, "alert ");

	return alert ? alert : words;
}

// The other side does not want us. With TLS 1.3 that comes after the handshake (RFC 8446 section 4.4.2.4) and often
// as a reset, so what is wrong has to be found out here.
static bool tell_refusal(const struct config_tls *tls, const struct etcd_failure *failure,
	char *ret_error, size_t bytes)
{
	char date[DATE_BYTES];

	if (has_expired(tls->certificate, date)) {
		snprintf(ret_error, bytes,
			"%s refuses this node: store.tls.certificate %s expired on %s; put a new one there",
			failure->endpoint, tls->certificate, date);
		return true;
	}
	bool certain = strstr(failure->detail, "alert ") != NULL;
	const char *verb = certain ? "refuses this node" : "hangs up on this node";

	if (tls->certificate[0] == '\0')
		snprintf(ret_error, bytes,
			"%s %s (%s): if it wants a client certificate, set store.tls.certificate "
			"and store.tls.key",
			failure->endpoint, verb, gist(failure));
	else
		snprintf(ret_error, bytes,
			"%s %s (%s): is store.tls.certificate %s signed by an authority that etcd "
			"trusts (--trusted-ca-file)?",
			failure->endpoint, verb, gist(failure), tls->certificate);
	return certain;
}

bool etcd_failure_tell(const struct config_store *config, const struct etcd_failure *failure,
	char *ret_error, size_t bytes)
{
	const struct config_tls *tls = &config->tls;
	bool secure = strncmp(failure->endpoint, "https:", 6) == 0;

	switch (failure->code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		snprintf(ret_error, bytes,
			"%s: its certificate is not taken (%.120s): does store.tls.ca name its "
			"authority? It is %s",
			failure->endpoint, gist(failure), tls->ca[0] ? tls->ca : "the system's");
		return true;
	case CURLE_SSL_CERTPROBLEM:
		snprintf(ret_error, bytes,
			"cannot use store.tls.certificate %s with store.tls.key %s (%.120s)",
			tls->certificate, tls->key, gist(failure));
		return true;
	case CURLE_SSL_CACERT_BADFILE:
		snprintf(ret_error, bytes, "store.tls.ca: %s holds no certificates (%.120s)",
			tls->ca, gist(failure));
		return true;
	default:
		break;
	}
	if (strstr(failure->detail, "alert ") != NULL || (secure && failure->silent))
		return tell_refusal(tls, failure, ret_error, bytes);
	if (strstr(failure->detail, "wrong version number") != NULL) {
		snprintf(ret_error, bytes,
			"%s does not speak TLS: is it http:// there, or has etcd no certificate?",
			failure->endpoint);
		return true;
	}
	snprintf(ret_error, bytes, "%s: %.160s%s", failure->endpoint, gist(failure),
		!secure && failure->silent ? ": does it want https://?" : "");
	return false;
}
