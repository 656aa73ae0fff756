internal import Transfers
internal import Trebuchet
internal import TrebuchetTokens

/// Verifies the ID tokens of one provider with its keys.
struct ProviderKeys: Sendable {
    let provider: OpenIDProvider
    private let keys: IssuerKeys
    private let now: @Sendable () -> Int64

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - uptime: monotonic milliseconds, for the cache lifetime.
    ///   - report: receives the reason when the keys cannot be fetched.
    init(
        _ provider: OpenIDProvider, now: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Int64,
        report: @escaping @Sendable (String) -> Void
    ) {
        self.provider = provider
        self.now = now
        keys = IssuerKeys(
            from: provider.source, of: "provider '\(provider.name)'", timeout: HTTPTransfer.timeout,
            staleTime: .seconds(24 * 60 * 60), uptime: uptime
        ) { level, line in
            if level == .warning { report(line) }
        }
    }

    /// Verifies an ID token and returns its identity.
    func identity(of text: String, nonce: String?) async throws(AuthError) -> Identity {
        let token: SignedToken
        do throws(AccessDenied) { token = try SignedToken(text) } catch {
            throw .invalidToken("it is not a signed token")
        }
        guard ["RS256", "ES256"].contains(token.algorithm) else {
            throw .invalidToken("it is not signed with RS256 or ES256")
        }
        do throws(IssuerKeys.Failure) {
            try await keys.verify(token)
        } catch {
            switch error {
            case .unknownKey: throw .invalidToken("the provider has no such key")
            case .wrongSignature: throw .invalidToken("its signature is wrong")
            case .unavailable: throw .providerUnavailable
            }
        }
        return try IDToken(token.body).identity(at: provider, nonce: nonce, now: Double(now()) / 1000)
    }
}
