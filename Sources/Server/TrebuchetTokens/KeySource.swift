internal import Bytes
internal import Platform
package import Transfers
package import Transports

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The place where an issuer publishes its keys.
package enum KeySource: Sendable {
    /// The URL of a document with the URL of the key set, and the issuer that the document must name.
    case discovery(HTTPEndpoint, issuer: String)
    /// The URL of the key set.
    case keySet(HTTPEndpoint)

    private struct Discovery: Decodable {
        let issuer: String
        let jwks_uri: String
    }

    /// Returns the discovery of an issuer (OpenID Connect Discovery 1.0 §4).
    package static func wellKnown(at issuer: String) throws(TransportError) -> KeySource {
        let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
        return .discovery(try HTTPEndpoint(base + "/.well-known/openid-configuration"), issuer: issuer)
    }

    /// Fetches the keys.
    ///
    /// - Parameter timeout: the time limit of all requests together.
    /// - Returns: the keys and their lifetime in milliseconds.
    func fetch(within timeout: Duration) async throws(TransportError) -> (keys: [PublishedKey], lifetime: Int64) {
        let start = MonotonicClock.now
        let endpoint: HTTPEndpoint
        switch self {
        case .keySet(let url): endpoint = url
        case .discovery(let url, let issuer): endpoint = try await Self.keySet(at: url, of: issuer, within: timeout)
        }
        let rest = timeout - .nanoseconds(Int64(clamping: MonotonicClock.now - start))
        let response = try await Self.get(endpoint, within: rest)
        do throws(TransportError) {
            let lifetime = KeyCache.lifetime(response.headers.list("Cache-Control"))
            return (try KeySet.keys(in: response.body), lifetime)
        } catch {
            throw TransportError(error.code, "\(endpoint.withoutQuery): \(error.message)")
        }
    }

    /// Returns the URL of the key set that a discovery document names.
    private static func keySet(
        at url: HTTPEndpoint, of issuer: String, within timeout: Duration
    ) async throws(TransportError) -> HTTPEndpoint {
        let response = try await get(url, within: timeout)
        guard let found = try? JSONDecoder().decode(Discovery.self, from: Data(response.body)) else {
            throw TransportError(.handshake, "\(url.withoutQuery) has no 'issuer' or no 'jwks_uri'")
        }
        guard found.issuer.isSameBytes(as: issuer) else {
            throw TransportError(
                .handshake,
                "\(url.withoutQuery) has the issuer '\(found.issuer.prefix(bytes: 256))' instead of '\(issuer)'")
        }
        let keySet: HTTPEndpoint
        do throws(TransportError) { keySet = try HTTPEndpoint(found.jwks_uri) } catch {
            throw TransportError(error.code, "\(url.withoutQuery): 'jwks_uri': \(error.message)")
        }
        // Otherwise the keys of an issuer could come from another program of this machine.
        guard keySet.isSecure || !url.isSecure else {
            throw TransportError(.handshake, "\(url.withoutQuery): 'jwks_uri' must be an https URL")
        }
        return keySet
    }

    private static func get(_ url: HTTPEndpoint, within timeout: Duration) async throws(TransportError)
        -> TransferResponse
    {
        let response: TransferResponse
        do throws(TransportError) { response = try await HTTPTransfer.get(url, timeout: timeout) } catch {
            throw TransportError(error.code, "\(url.withoutQuery): \(error.message)")
        }
        guard response.status == 200 else {
            let hint = (300..<400).contains(response.status) ? "; redirects are not followed" : ""
            throw TransportError(
                .handshake, "\(url.withoutQuery) responded with status \(response.status)\(hint)")
        }
        return response
    }
}
