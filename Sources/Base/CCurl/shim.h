#include <curl/curl.h>

// curl_easy_setopt and curl_easy_getinfo take variable arguments, which Swift cannot call: one function for each kind of value.

static inline CURLcode trebuchet_curl_set_number(CURL *transfer, CURLoption option, long value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode trebuchet_curl_set_size(CURL *transfer, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(transfer, option, value);
}

// libcurl copies the text.
static inline CURLcode trebuchet_curl_set_text(CURL *transfer, CURLoption option, const char *value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode trebuchet_curl_set_list(CURL *transfer, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline CURLcode trebuchet_curl_set_pointer(CURL *transfer, CURLoption option, void *value) {
    return curl_easy_setopt(transfer, option, value);
}

typedef size_t (*trebuchet_curl_callback)(char *, size_t, size_t, void *);

static inline CURLcode trebuchet_curl_set_callback(CURL *transfer, CURLoption option, trebuchet_curl_callback value) {
    return curl_easy_setopt(transfer, option, value);
}

static inline long trebuchet_curl_status(CURL *transfer) {
    long status = 0;
    curl_easy_getinfo(transfer, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

// The last error number of the operating system.
static inline long trebuchet_curl_os_error(CURL *transfer) {
    long number = 0;
    curl_easy_getinfo(transfer, CURLINFO_OS_ERRNO, &number);
    return number;
}
