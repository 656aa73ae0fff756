import Testing

@testable import TrebuchetServices

@Suite struct IDTokenTests {
    private static let now = 1_800_000_000.0
    private static let usual = #""iss":"https://a.b","sub":"7","aud":"app","exp":1800000100"#

    private static func provider() throws -> OpenIDProvider {
        try OpenIDProvider(issuer: "https://a.b", audiences: ["app", "web"])
    }

    @Test(
        "the claims of a token are checked",
        arguments: [
            (usual, nil, true), (#""iss":"https://a.b","sub":"7","aud":["app"],"exp":1800000100"#, nil, true),
            // Issuer and audience, by their bytes.
            (#""iss":"https://a.b/","sub":"7","aud":"app","exp":1800000100"#, nil, false),
            (#""iss":"https://e.v","sub":"7","aud":"app","exp":1800000100"#, nil, false),
            (#""sub":"7","aud":"app","exp":1800000100"#, nil, false),
            (#""iss":"https://a.b","sub":"7","aud":"other","exp":1800000100"#, nil, false),
            (#""iss":"https://a.b","sub":"7","exp":1800000100"#, nil, false),
            (#""iss":"https://a.b","sub":"7","aud":[],"exp":1800000100"#, nil, false),
            // If there are several audiences, the authorized party must be this app.
            (#""iss":"https://a.b","sub":"7","aud":["app","x"],"exp":1800000100"#, nil, false),
            (#""iss":"https://a.b","sub":"7","aud":["app","x"],"azp":"app","exp":1800000100"#, nil, true),
            (#""iss":"https://a.b","sub":"7","aud":["app","x"],"azp":"x","exp":1800000100"#, nil, false),
            (usual + #","azp":"web""#, nil, true), (usual + #","azp":"x""#, nil, false),
            // Times, with a minute of leeway.
            (#""iss":"https://a.b","sub":"7","aud":"app","exp":1799999941"#, nil, true),
            (#""iss":"https://a.b","sub":"7","aud":"app","exp":1799999940"#, nil, false),
            (#""iss":"https://a.b","sub":"7","aud":"app""#, nil, false),
            (usual + #","iat":1800000060"#, nil, true), (usual + #","iat":1800000061"#, nil, false),
            (usual + #","nbf":1800000060"#, nil, true), (usual + #","nbf":1800000061"#, nil, false),
            // The nonce: the text, or its SHA-256.
            (usual + #","nonce":"n""#, "n", true), (usual + #","nonce":"n""#, nil, false),
            (usual + #","nonce":"n""#, "m", false), (usual, "n", false),
            (
                usual + #","nonce":"1b16b1df538ba12dc3f97edbb85caa7050d46c148134290feba80f8236c83db9""#, "n", true
            ),
            // Subjects.
            (#""iss":"https://a.b","sub":"","aud":"app","exp":1800000100"#, nil, false),
            (#""iss":"https://a.b","aud":"app","exp":1800000100"#, nil, false),
            (
                #""iss":"https://a.b","sub":"\#(String(repeating: "7", count: 256))","aud":"app","exp":1800000100"#,
                nil, false
            ),
        ] as [(String, String?, Bool)])
    func claims(_ claims: String, nonce: String?, isGood: Bool) throws {
        let provider = try Self.provider()
        let identity = try? IDToken(Array("{\(claims)}".utf8)).identity(at: provider, nonce: nonce, now: Self.now)
        #expect((identity != nil) == isGood)
    }

    @Test(
        "an address is used if the provider has verified it, and if it is valid for codes",
        arguments: [
            (#","email":"Ada@b.c","email_verified":true"#, "ada@b.c"),
            (#","email":"ada@b.c","email_verified":"true""#, "ada@b.c"),
            (#","email":"ada@b.c","email_verified":false"#, nil),
            (#","email":"ada@b.c","email_verified":"false""#, nil),
            (#","email":"ada@b.c","email_verified":1"#, nil), (#","email":"ada@b.c""#, nil),
            (#","email":"|ada@b.c","email_verified":true"#, nil), (#","email_verified":true"#, nil),
        ] as [(String, String?)])
    func address(_ claims: String, address: String?) throws {
        let identity = try IDToken(Array("{\(Self.usual)\(claims)}".utf8)).identity(
            at: try Self.provider(), nonce: nil, now: Self.now)
        #expect(identity.address?.text == address)
    }

    @Test("an identity consists of issuer and subject, by their bytes")
    func identity() {
        let names = [
            ("https://a.b", "7"), ("https://a.b", "8"), ("https://a.c", "7"), ("https://a.b7", ""),
            ("https://a.b", "é"),
            ("https://a.b", "e\u{301}"),
        ].map { Identity(issuer: $0.0, subject: $0.1, address: nil).name }
        #expect(Set(names).count == names.count)
        #expect(names[0] == Identity(issuer: "https://a.b", subject: "7", address: nil).name)
    }

    @Test(
        "providers with invalid parts are refused, with the part named",
        arguments: [
            ("", "app", nil, "issuer"), ("https://a.b", "", nil, "audience"), ("http://a.b", "app", nil, "issuer"),
            ("https://a.b", "app", "http://a.b/k", "keys"), ("https://a.b", "app", "ftp://a.b/k", "keys"),
            ("https://a.b", "app", "https://u@a.b/k", "keys"), ("https://a.b", "app", "https://a.b/k#x", "keys"),
            ("https://a.b", "app", "https://localhost.a.b:0/k", "keys"), ("https://a.b", "app", "k", "keys"),
            ("https://a.b", "app", "http://localhost:1/k", nil), ("https://a.b", "app", "http://[::1]:1/k", nil),
            ("http://127.0.0.1:1", "app", nil, nil), ("any", "app", "https://a.b", nil),
        ] as [(String, String, String?, String?)])
    func problems(_ issuer: String, _ audience: String, keys: String?, member: String?) {
        var problem: OpenIDProvider.Problem?
        do throws(OpenIDProvider.Problem) {
            _ = try OpenIDProvider(issuer: issuer, audience: audience, keys: keys.map { .url($0) } ?? .discovery)
        } catch {
            problem = error
        }
        #expect(problem?.member == member, "\(String(describing: problem))")
    }

    @Test("Google and Apple are predefined")
    func presets() {
        let google = OpenIDProvider.google(clientID: "g")
        #expect(google.name == "google" && google.isIssuer("accounts.google.com") && google.isAudience("g"))
        #expect(google.isIssuer("https://accounts.google.com") && !google.isIssuer("https://appleid.apple.com"))
        let apple = OpenIDProvider.apple(clientID: "a")
        #expect(apple.name == "apple" && apple.isIssuer("https://appleid.apple.com") && apple.isAudience("a"))
    }
}
