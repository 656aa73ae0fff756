internal import CCurl
internal import Glibc
internal import Networking
internal import Platform
package import Transports

/// One transfer of libcurl: a request and its response, or a mail. Only on the thread that created it.
final class Transfer {
    /// libcurl is initialized once, after OpenSSL.
    private static let isInitialized = OpenSSL.isInitialized && curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    private let handle: UnsafeMutableRawPointer
    private let maximumSize: Int
    /// libcurl writes a description of an error here, up to `CURL_ERROR_SIZE` bytes.
    private let reason = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private var lists: [UnsafeMutablePointer<curl_slist>] = []
    private var upload: [UInt8] = []
    private var uploadedCount = 0
    private var headerSize = 0
    private var headers = HTTPHeaders()
    private var body: [UInt8] = []
    private var isTooLarge = false
    /// The last refusal of a mail relay, shortened.
    private var refusal: String?
    private var isMail = false
    private var isClosed = false

    /// - Parameters:
    ///   - protocols: the permitted schemes, such as `http,https`.
    ///   - timeout: the time limit of the whole transfer.
    ///   - maximumSize: the maximum size of the header and of the body of the response in bytes.
    init(
        _ url: String, protocols: String, timeout: Duration, maximumSize: Int
    ) throws(TransportError) {
        guard Self.isInitialized, let handle = curl_easy_init() else {
            throw TransportError(.system, "libcurl cannot be initialized: out of memory")
        }
        self.handle = handle
        self.maximumSize = maximumSize
        reason.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        _ = trebuchet_curl_set_pointer(handle, CURLOPT_ERRORBUFFER, reason)
        try set(CURLOPT_URL, url)
        try set(CURLOPT_PROTOCOLS_STR, protocols)
        // An empty text means none, whatever the environment says. `.netrc` is ignored and redirects are not followed by default.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_NOSIGNAL, 1)
        let milliseconds = max(1, Int(timeout / .milliseconds(1)))
        try set(CURLOPT_TIMEOUT_MS, milliseconds)
        try set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds)
        // As in the connections of clients, which use OpenSSL directly.
        if let file = getenv("SSL_CERT_FILE") { try set(CURLOPT_CAINFO, String(cString: file)) }
        let own = Unmanaged.passUnretained(self).toOpaque()
        _ = trebuchet_curl_set_pointer(handle, CURLOPT_WRITEDATA, own)
        _ = trebuchet_curl_set_pointer(handle, CURLOPT_HEADERDATA, own)
        _ = trebuchet_curl_set_pointer(handle, CURLOPT_READDATA, own)
        // The callbacks run during `run` and `close`, and do not keep the object.
        _ = trebuchet_curl_set_callback(handle, CURLOPT_WRITEFUNCTION) { bytes, size, count, transfer in
            Transfer.of(transfer).receive(UnsafeRawBufferPointer(start: bytes, count: size * count))
        }
        _ = trebuchet_curl_set_callback(handle, CURLOPT_HEADERFUNCTION) { bytes, size, count, transfer in
            Transfer.of(transfer).receiveHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
        }
        _ = trebuchet_curl_set_callback(handle, CURLOPT_READFUNCTION) { bytes, size, count, transfer in
            Transfer.of(transfer).send(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
        }
    }

    deinit {
        close()
        for list in lists { curl_slist_free_all(list) }
        reason.deallocate()
    }

    /// - Parameter transfer: the pointer that `init` has passed to libcurl.
    private static func of(_ transfer: UnsafeMutableRawPointer?) -> Transfer {
        // libcurl passes the pointer back as it was set, never nil.
        Unmanaged<Transfer>.fromOpaque(transfer!).takeUnretainedValue()
    }

    // MARK: Preparation

    func set(_ option: CURLoption, _ value: Int) throws(TransportError) {
        try check(trebuchet_curl_set_number(handle, option, value))
    }

    func set(_ option: CURLoption, _ value: String) throws(TransportError) {
        // A zero byte would end the text.
        guard !value.utf8.contains(0) else {
            throw TransportError(.addressInvalid, "a zero byte in an option")
        }
        try check(trebuchet_curl_set_text(handle, option, value))
    }

    /// - Parameter lines: without line ends and zero bytes.
    func set(_ option: CURLoption, _ lines: [String]) throws(TransportError) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines { list = curl_slist_append(list, line) ?? list }
        guard let list else { return }
        lists.append(list)
        try check(trebuchet_curl_set_list(handle, option, list))
    }

    /// Sets the body of a POST request.
    func setBody(_ bytes: [UInt8]) throws(TransportError) {
        upload = bytes
        try set(CURLOPT_POST, 1)
        try check(trebuchet_curl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count)))
    }

    /// Sets the text of a mail, with CR LF line ends.
    func setMail(_ text: String) throws(TransportError) {
        isMail = true
        upload = Array(text.utf8)
        try set(CURLOPT_UPLOAD, 1)
        try check(trebuchet_curl_set_size(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(upload.count)))
    }

    private func check(_ code: CURLcode) throws(TransportError) {
        guard code != CURLE_OK else { return }
        throw TransportError(.addressInvalid, String(cString: curl_easy_strerror(code)))
    }

    // MARK: Transfer

    private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard body.count + bytes.count <= maximumSize else {
            isTooLarge = true
            return 0
        }
        body += bytes
        return bytes.count
    }

    private func receiveHeader(_ line: UnsafeRawBufferPointer) -> Int {
        headerSize += line.count
        guard headerSize <= maximumSize else {
            isTooLarge = true
            return 0
        }
        let text = String(decoding: line, as: UTF8.self)
        if isMail {
            guard text.hasPrefix("4") || text.hasPrefix("5") else { return line.count }
            refusal = String(text.unicodeScalars.filter { $0.value >= 32 && $0.value != 127 }.prefix(200))
        } else if text.hasPrefix("HTTP/") {
            // An interim response has its own header.
            headers = HTTPHeaders()
        } else if let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) {
            let value = text[text.utf8.index(after: colon)...].prefix { !$0.isNewline }
            headers.add(String(text[..<colon]), String(value.trimmingSpaces))
        }
        return line.count
    }

    private func send(_ space: UnsafeMutableRawBufferPointer) -> Int {
        let part = upload[uploadedCount...].prefix(space.count)
        space.copyBytes(from: part)
        uploadedCount += part.count
        return part.count
    }

    /// Performs the transfer, which blocks the thread.
    private func run() throws(TransportError) -> TransferResponse {
        let code = curl_easy_perform(handle)
        guard code == CURLE_OK else { throw error(code) }
        return TransferResponse(status: trebuchet_curl_status(handle), headers: headers, body: body)
    }

    /// Ends the connection, which may wait for the reply to QUIT.
    private func close() {
        guard !isClosed else { return }
        isClosed = true
        curl_easy_cleanup(handle)
    }

    /// Prepares a transfer with `make` on a thread, performs it there, and returns its response.
    static func perform(
        on threads: BlockingThreads, _ make: @escaping @Sendable () throws(TransportError) -> Transfer
    ) async throws(TransportError) -> TransferResponse {
        let result: Result<TransferResponse, TransportError> = await withCheckedContinuation { continuation in
            threads.run {
                do throws(TransportError) {
                    let transfer = try make()
                    let result = Result { () throws(TransportError) in try transfer.run() }
                    continuation.resume(returning: result)
                    // A mail relay may take its time for this.
                    transfer.close()
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    private func error(_ code: CURLcode) -> TransportError {
        if isTooLarge { return TransportError(.tooLarge, "the response is larger than \(maximumSize) bytes") }
        let text = String(cString: reason)
        var message = text.isEmpty ? String(cString: curl_easy_strerror(code)) : text
        if let refusal, code != CURLE_OPERATION_TIMEDOUT { message += " (\(refusal))" }
        let kind: TransportError.Code =
            switch code {
            case CURLE_COULDNT_CONNECT: trebuchet_curl_os_error(handle) == ECONNREFUSED ? .refused : .system
            case CURLE_COULDNT_RESOLVE_HOST: .addressInvalid
            case CURLE_OPERATION_TIMEDOUT: .timedOut
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CACERT_BADFILE,
                CURLE_USE_SSL_FAILED:
                .tls
            case CURLE_LOGIN_DENIED: .token
            case CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_SEND_ERROR: .closed
            default: .handshake
            }
        return TransportError(kind, message)
    }
}

/// The response to a transfer.
package struct TransferResponse: Sendable {
    /// The status of HTTP, or the last reply code of another protocol.
    package let status: Int
    package let headers: HTTPHeaders
    package let body: [UInt8]
}
