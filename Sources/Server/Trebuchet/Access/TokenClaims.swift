internal import Platform

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The claims of a token (RFC 7519 §4) and their validation. Pure.
package struct TokenClaims: Sendable {
    private let claims: Claims

    /// - Parameter body: the claims in JSON.
    package init(_ body: [UInt8]) throws(AccessDenied) {
        guard let claims = try? JSONDecoder().decode(Claims.self, from: Data(body)) else {
            throw .invalidToken("its claims are not JSON")
        }
        self.claims = claims
    }

    /// `iss`
    package var issuer: String? { claims.iss }

    /// Checks the times, the issuer and the audience.
    ///
    /// - Parameters:
    ///   - issuer: the value that `iss` must equal; nil skips the check.
    ///   - audiences: `aud` must equal or contain one of these; nil skips the check.
    ///   - leeway: the tolerated clock difference.
    ///   - now: seconds since 1970.
    package func check(issuer: String?, audiences: Set<String>?, leeway: Duration, now: Int64) throws(AccessDenied) {
        let now = Double(now)
        let leeway = leeway / .seconds(1)
        guard let expiry = claims.exp else { throw .invalidToken("it has no expiry") }
        guard now < expiry + leeway else { throw .invalidToken("it has expired") }
        if let start = claims.nbf, now < start - leeway { throw .invalidToken("it is not valid yet") }
        // By bytes, since Swift treats canonically equivalent strings as equal.
        if let issuer, claims.iss?.isSameBytes(as: issuer) != true { throw .invalidToken("its issuer is wrong") }
        if let audiences, !claims.aud.contains(where: { claim in audiences.contains { $0.isSameBytes(as: claim) } }) {
            throw .invalidToken("its audience is wrong")
        }
    }

    /// Returns the principal: `sub` is the id, `roles` the roles, other claims that are strings or numbers are `claims`.
    package func principal() throws(AccessDenied) -> Principal {
        guard let id = claims.sub else { throw .invalidToken("it has no subject") }
        return Principal(id: id, roles: Set(claims.roles), claims: claims.others)
    }

    /// The registered claims; `others` has strings and numbers of the remaining ones.
    private struct Claims: Decodable {
        var sub: String?
        var iss: String?
        var aud: [String] = []
        var exp: Double?
        var nbf: Double?
        var roles: [String] = []
        var others: [String: String] = [:]

        /// A coding key of any name.
        struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }
            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { nil }
        }

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: Name.self)
            for name in members.allKeys {
                switch name.stringValue {
                case "sub": sub = try members.decode(String.self, forKey: name)
                case "iss": iss = try members.decode(String.self, forKey: name)
                case "exp": exp = try members.decode(Double.self, forKey: name)
                case "nbf": nbf = try members.decode(Double.self, forKey: name)
                case "aud":
                    if let one = try? members.decode(String.self, forKey: name) {
                        aud = [one]
                    } else {
                        aud = try members.decode([String].self, forKey: name)
                    }
                case "roles": roles = try members.decode([String].self, forKey: name)
                default:
                    if let text = try? members.decode(String.self, forKey: name) {
                        others[name.stringValue] = text
                    } else if let number = try? members.decode(Double.self, forKey: name) {
                        others[name.stringValue] =
                            number == number.rounded() ? String(Int64(exactly: number) ?? 0) : "\(number)"
                    }
                }
            }
        }
    }
}
