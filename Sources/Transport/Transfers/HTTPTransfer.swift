internal import CCurl
internal import Platform
package import Transports

/// Fetches or posts a small document over HTTP.
///
/// Redirects are not followed, because trust in a URL does not extend to the target of a redirect. Proxies and `.netrc` of the
/// environment are not used. At most 32 requests are in progress; more wait. `https:` trusts the roots of the system, or those of the file that `SSL_CERT_FILE` names.
package enum HTTPTransfer {
    /// The default maximum size of a response in bytes.
    package static let maximumResponseSize = 256 << 10
    /// The default time limit.
    package static let timeout = Duration.seconds(10)
    private static let threads = BlockingThreads(32)

    /// Fetches a document.
    ///
    /// - Parameters:
    ///   - bearer: a token for the `Authorization` field, without line breaks.
    ///   - maximumSize: the maximum size of the response in bytes; a larger response is an error.
    ///   - timeout: the time limit of the whole request.
    /// - Throws: ``TransportError``. A response with any status is no error.
    package static func get(
        _ endpoint: HTTPEndpoint, bearer: String? = nil, maximumSize: Int = maximumResponseSize,
        timeout: Duration = timeout
    ) async throws(TransportError) -> TransferResponse {
        try await perform(endpoint, maximumSize, timeout) { transfer throws(TransportError) in
            try transfer.set(
                CURLOPT_HTTPHEADER,
                ["Accept: application/json"] + (bearer.map { ["Authorization: Bearer \($0)"] } ?? []))
        }
    }

    /// Posts a JSON document.
    ///
    /// - Parameters:
    ///   - json: the encoded document.
    ///   - timeout: the time limit of the whole request.
    /// - Throws: ``TransportError``. A response with any status is no error.
    package static func post(
        _ json: [UInt8], to endpoint: HTTPEndpoint, timeout: Duration = timeout
    ) async throws(TransportError) -> TransferResponse {
        try await perform(endpoint, maximumResponseSize, timeout) { transfer throws(TransportError) in
            try transfer.setBody(json)
            // An empty `Expect` field: a server that does not know 100-continue would delay the request.
            try transfer.set(
                CURLOPT_HTTPHEADER, ["Accept: application/json", "Content-Type: application/json", "Expect:"])
        }
    }

    private static func perform(
        _ endpoint: HTTPEndpoint, _ maximumSize: Int, _ timeout: Duration,
        prepare: @escaping @Sendable (Transfer) throws(TransportError) -> Void
    ) async throws(TransportError) -> TransferResponse {
        try await Transfer.perform(on: threads) { () throws(TransportError) in
            let transfer = try Transfer(
                endpoint.description, protocols: "http,https", timeout: timeout,
                maximumSize: maximumSize)
            try transfer.set(CURLOPT_FORBID_REUSE, 1)
            try transfer.set(CURLOPT_USERAGENT, "trebuchet")
            try prepare(transfer)
            return transfer
        }
    }
}
