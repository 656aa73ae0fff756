import Testing
import Trebuchet
import TrebuchetTesting

@testable import TrebuchetTokens

@Suite struct KeySetTests {
    private static let rsa = TestSigningKey("r", .rsa(bits: 2_048))
    private static let ec = TestSigningKey("e")
    private static let ed25519 = TestSigningKey("d", .ed25519)

    /// 32 bytes.
    private static let zeros = String(repeating: "A", count: 43)

    private func keys(_ elements: String...) throws -> [PublishedKey] {
        try KeySet.keys(in: Array(#"{"keys":[\#(elements.joined(separator: ","))]}"#.utf8))
    }

    @Test("keys of all three types verify tokens, with their use and algorithm or without")
    func types() throws {
        for key in [Self.rsa, Self.ec, Self.ed25519] {
            for members in [
                "", #""use":"sig""#, #""alg":"\#(key.algorithm.rawValue)""#, #""key_ops":["verify"]"#,
                #""x5t":"AA","ext":true"#,
            ] {
                let found = try keys(key.json(members))
                #expect(found.map(\.id) == [key.id] && found.map(\.key.algorithm) == [key.algorithm], "\(members)")
                #expect(try SignedToken(key.token("{}")).isSigned(by: found[0].key))
            }
        }
        #expect(try keys(Self.ed25519.json(#""alg":"Ed25519""#)).count == 1)
    }

    @Test("keys for another use or algorithm are skipped")
    func uses() throws {
        for key in [Self.rsa, Self.ec, Self.ed25519] {
            for members in [
                #""use":"enc""#, #""use":"""#, #""use":1"#, #""key_ops":["sign"]"#, #""key_ops":[]"#, #""alg":"HS256""#,
                #""alg":"none""#, #""alg":"RS512""#, #""alg":"ES384""#, #""alg":"Ed448""#,
                key.algorithm == .es256 ? #""alg":"EdDSA""# : #""alg":"ES256""#,
            ] {
                #expect(try keys(key.json(members), Self.ec.json("")).map(\.id) == ["e"], "\(members)")
            }
        }
    }

    @Test(
        "keys of unsupported types and invalid keys are skipped",
        arguments: [
            "3", "[]", "{}", #"{"kty":"oct","k":"AAAA"}"#, #"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#, #"{"kty":"EC"}"#,
            #"{"kty":"OKP","crv":"X25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUQ"}"#,
            #"{"kty":"OKP","crv":"Ed25519"}"#, #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#,
            // Not on the curve.
            #"{"kty":"EC","crv":"P-256","x":"\#(zeros)","y":"\#(zeros)"}"#,
            // A curve with points of the same size.
            #"{"kty":"EC","crv":"secp256k1","x":"\#(zeros)","y":"\#(zeros)"}"#,
        ])
    func otherTypes(other: String) throws {
        #expect(try keys(other, Self.ec.json).map(\.id) == ["e"])
        #expect(try keys(other).isEmpty)
    }

    @Test(
        "RSA keys have 2,048 to 8,192 bits",
        arguments: [(1_024, false), (2_047, false), (2_048, true), (3_072, true)] as [(Int32, Bool)])
    func sizes(bits: Int32, isUsed: Bool) throws {
        let key = TestSigningKey("r", .rsa(bits: bits))
        #expect(try keys(key.json, Self.ec.json).map(\.id) == (isUsed ? ["r", "e"] : ["e"]))
        let long = String(repeating: "A", count: 1_399)
        #expect(try keys(#"{"kty":"RSA","n":"\#("w" + long)","e":"AQAB"}"#).isEmpty)
    }

    @Test(
        "a document that is no key set is an error",
        arguments: [
            ("", "is not a JSON Web Key Set"), ("[]", "is not a JSON Web Key Set"), ("{}", "is not a JSON Web Key Set"),
            (#"{"keys":{}}"#, "is not a JSON Web Key Set"),
        ])
    func documents(text: String, reason: String) throws {
        let error = #expect(throws: TransportError.self) { try KeySet.keys(in: Array(text.utf8)) }
        #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
    }

    @Test("a key set may be empty: its issuer has withdrawn all keys", arguments: ["", "{},{}"])
    func withdrawn(text: String) throws { #expect(try keys(text).isEmpty) }

    @Test("a key set has at most 64 keys, usable or not")
    func count() throws {
        let others = Array(repeating: "{}", count: 63).joined(separator: ",")
        #expect(try keys(others, Self.ec.json).count == 1)
        let error = #expect(throws: TransportError.self) { try keys(others, Self.ec.json, "{}") }
        #expect(error?.code == .tooLarge && error?.message.contains("has 65 keys; at most 64") == true)
    }
}
