internal import Bytes
package import Networking
internal import Transports
internal import WebSockets

/// Fetches or posts a small document. Redirects are not followed: trust in an address does not extend to the target of a
/// redirect.
package enum HTTPFetch {
    /// The default maximum size of a response in bytes.
    package static let maximumResponseSize = 256 << 10
    /// The time limit for connecting, and again for the request until the last byte of the response.
    package static let timeout = Duration.seconds(10)

    /// Fetches a document.
    ///
    /// - Parameters:
    ///   - trust: the trust settings for `https:`. Default: the roots of the system.
    ///   - bearer: a token for the `Authorization` field, without line breaks.
    ///   - maximumSize: the maximum size of the response in bytes; a larger response is an error.
    package static func get(
        _ address: HTTPEndpoint, trust: TLSClientSettings = TLSClientSettings(), bearer: String? = nil,
        maximumSize: Int = maximumResponseSize
    ) async throws -> HTTPClientResponse {
        try await sendRequest(address, "GET", body: nil, bearer: bearer, maximumSize, trust, timeout)
    }

    /// Posts a JSON document.
    ///
    /// - Parameter json: the encoded document.
    package static func post(
        _ json: [UInt8], to address: HTTPEndpoint, trust: TLSClientSettings = TLSClientSettings(),
        patience: Duration = timeout
    ) async throws -> HTTPClientResponse {
        try await sendRequest(address, "POST", body: json, bearer: nil, maximumResponseSize, trust, patience)
    }

    private static func sendRequest(
        _ address: HTTPEndpoint, _ method: String, body: [UInt8]?, bearer: String?, _ maximumSize: Int,
        _ trust: TLSClientSettings, _ patience: Duration
    ) async throws -> HTTPClientResponse {
        let reactor = ReactorGroup.client
        let channel = try await Connector.connect(
            host: address.host, port: address.port, on: reactor, timeout: patience)
        if address.isSecure { try channel.secure(with: TLSContext.client(trust), host: address.host) }
        return try await withCheckedThrowingContinuation { continuation in
            reactor.execute {
                HTTPClientRequest(address, method, body, bearer, maximumSize, continuation).start(channel, patience)
            }
        }
    }
}

/// One request in progress. Only on its reactor.
private final class HTTPClientRequest: ByteChannelDelegate {
    private let address: HTTPEndpoint
    private let method: String
    private let body: [UInt8]?
    private var continuation: CheckedContinuation<HTTPClientResponse, any Error>?
    private let bearer: String?
    private var reader: HTTPClientResponseReader
    private var timer: LoopTimer?

    init(
        _ address: HTTPEndpoint, _ method: String, _ body: [UInt8]?, _ bearer: String?, _ maximumSize: Int,
        _ continuation: CheckedContinuation<HTTPClientResponse, any Error>
    ) {
        (self.method, self.body) = (method, body)
        self.address = address
        self.bearer = bearer
        reader = HTTPClientResponseReader(limit: maximumSize)
        self.continuation = continuation
    }

    func start(_ channel: ByteChannel, _ patience: Duration) {
        do {
            try channel.start(self)
            timer = channel.reactor.schedule(after: patience, for: self) { [weak channel] request in
                request.finish(.failure(FetchError("it did not respond within \(patience)")))
                channel?.close()
            }
            var head =
                "\(method) \(address.target) HTTP/1.1\r\nHost: \(address.authority)\r\nAccept: application/json\r\n"
                + (bearer.map { "Authorization: Bearer \($0)\r\n" } ?? "")
                + "User-Agent: trebuchet\r\nConnection: close\r\n"
            if let body { head += "Content-Type: application/json\r\nContent-Length: \(body.count)\r\n" }
            channel.write { (buffer: inout ByteBuffer) in
                buffer.append(utf8: head + "\r\n")
                if let body { buffer.append(body) }
            }
        } catch {
            finish(.failure(error))
            channel.close()
        }
    }

    func channel(_ channel: ByteChannel, didRead bytes: UnsafeMutableRawBufferPointer) {
        guard continuation != nil else { return }
        do throws(FetchError) {
            guard let reply = try reader.receive(UnsafeRawBufferPointer(bytes)) else { return }
            finish(.success(reply))
        } catch {
            finish(.failure(error))
        }
        channel.close()
    }

    func channelDidBecomeWritable(_ channel: ByteChannel) {}

    func channelDidClose(_ channel: ByteChannel, error: TransportError?) {
        if let error { return finish(.failure(error)) }
        guard continuation != nil else { return }
        do throws(FetchError) { finish(.success(try reader.handleEndOfInput())) } catch { finish(.failure(error)) }
    }

    /// Reports the first outcome and ignores later ones.
    private func finish(_ outcome: Result<HTTPClientResponse, any Error>) {
        timer?.cancel()
        continuation?.resume(with: outcome)
        continuation = nil
    }
}
