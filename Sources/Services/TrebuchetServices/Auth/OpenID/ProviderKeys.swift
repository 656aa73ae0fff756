internal import Bytes
internal import Platform
internal import Transfers
internal import Transports
internal import Trebuchet

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The keys of one provider, fetched at the first use, one fetch at a time.
actor ProviderKeys {
    private struct Discovery: Decodable {
        let issuer: String
        let jwks_uri: String
    }

    nonisolated let provider: OpenIDProvider
    private let now: @Sendable () -> Int64
    private let uptime: @Sendable () -> Int64
    private let report: @Sendable (String) -> Void
    private var cache = KeyCache()
    private var fetch: Task<Void, Never>?

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - uptime: monotonic milliseconds, for the cache lifetime.
    ///   - report: receives the reasons of failed fetches.
    init(
        _ provider: OpenIDProvider, now: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Int64,
        report: @escaping @Sendable (String) -> Void
    ) {
        self.provider = provider
        self.now = now
        self.uptime = uptime
        self.report = report
    }

    /// Verifies an ID token and returns its identity.
    func identity(of token: String, nonce: String?) async throws(AuthError) -> Identity {
        let head = try IDToken.Header(token)
        guard ["RS256", "ES256"].contains(head.alg) else {
            throw .invalidToken("it is not signed with RS256 or ES256")
        }
        for key in try await keys(for: head) {
            guard let body = try? key.verifier.signedBody(of: token) else { continue }
            return try IDToken(body).identity(at: provider, nonce: nonce, now: Double(now()) / 1000)
        }
        throw .invalidToken("its signature is wrong")
    }

    private func keys(for head: IDToken.Header) async throws(AuthError) -> [SigningKey] {
        // A second attempt after a fetch: that fetch may have begun for another token, before the key was published.
        for _ in 0..<2 {
            switch cache.answer(head, at: uptime()) {
            case .keys(let keys): return keys
            case .unknownKey: throw .invalidToken("the provider has no such key")
            case .unavailable: throw .providerUnavailable
            case .fetch: await fetchOnce()
            }
        }
        if case .keys(let keys) = cache.answer(head, at: uptime()) { return keys }
        throw .providerUnavailable
    }

    private func fetchOnce() async {
        if let fetch { return await fetch.value }
        let task = Task { await fetchKeys() }
        fetch = task
        await task.value
        fetch = nil
    }

    private func fetchKeys() async {
        do {
            let reply = try await Self.get(try await address())
            let keys = try SigningKey.all(in: reply.body)
            cache.fetched(keys, lifetime: KeyCache.lifetime(reply.headers.list("Cache-Control")), at: uptime())
        } catch {
            cache.failed(at: uptime())
            report("fetching the keys of provider '\(provider.name)' failed: \(error)")
        }
    }

    private func address() async throws -> HTTPEndpoint {
        switch provider.source {
        case .keys(let address): return address
        case .discovery(let address):
            let reply = try await Self.get(address)
            guard let found = try? JSONDecoder().decode(Discovery.self, from: Data(reply.body)) else {
                throw TransportError(.handshake, "\(address) has no 'issuer' or no 'jwks_uri'")
            }
            guard found.issuer.isSameBytes(as: provider.issuer) else {
                throw TransportError(.handshake, "\(address) has the issuer '\(found.issuer.prefix(bytes: 256))'")
            }
            return try HTTPEndpoint(found.jwks_uri)
        }
    }

    private static func get(_ address: HTTPEndpoint) async throws(TransportError) -> TransferResponse {
        let reply: TransferResponse
        do throws(TransportError) {
            reply = try await HTTPTransfer.get(address)
        } catch {
            throw TransportError(error.code, "\(address): \(error.message)")
        }
        guard reply.status == 200 else {
            throw TransportError(.handshake, "\(address) responded with status \(reply.status)")
        }
        return reply
    }
}
