import Commands
import Trebuchet
import TrebuchetTokens

/// The options of `serve` for tokens of another service.
enum TokenOptions {
    static let specs = [
        OptionSpec(
            "--token-issuer", "URL",
            "admit only clients with a JSON Web Token of this issuer, whose keys are found by OpenID discovery; not with auth "
                + "(Docs/Guides/Security.md)"),
        OptionSpec(
            "--token-audience", "NAME", "audience of accepted tokens; required with --token-issuer",
            requires: "--token-issuer"),
        OptionSpec(
            "--token-keys", "URL", "URL of the key set of --token-issuer", default: "by discovery",
            requires: "--token-issuer"),
    ]

    /// Returns the verifier of tokens; nil without `--token-issuer`.
    static func issuers(_ arguments: ParsedArguments, log: any ServerEventHandler) throws(UsageError) -> TokenIssuers? {
        guard let url = arguments.string("--token-issuer") else {
            if let option = specs.map(\.name).first(where: arguments.has) {
                throw UsageError("\(option) requires --token-issuer")
            }
            return nil
        }
        guard let audience = arguments.string("--token-audience") else {
            throw UsageError("--token-issuer requires --token-audience NAME, the 'aud' of its tokens for this server")
        }
        do throws(TokenIssuer.Problem) {
            let keys = arguments.string("--token-keys")
            let issuer = try TokenIssuer(url, audience: audience, keys: keys.map { .keySetURL($0) } ?? .discovery)
            return try TokenIssuers([issuer], log: log)
        } catch {
            throw UsageError("--token-\(error.member): \(error.reason)")
        }
    }
}
