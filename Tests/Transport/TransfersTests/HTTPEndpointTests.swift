import Testing
import Transports

@testable import Transfers

@Suite struct HTTPEndpointTests {
    @Test(
        "https is accepted, http only to this machine or where it is allowed",
        arguments: [
            ("https://a.example", true, true), ("https://a.example:8443/x?y=z", true, true),
            ("HTTPS://a.example/", true, true), ("http://localhost:1/x", true, true), ("http://127.0.0.1", true, true),
            ("http://[::1]:80/", true, true), ("http://a.example", false, true),
            ("http://127.0.0.1.a.example", false, true),
            ("http://localhost@a.example", false, false), ("https://u:p@a.example", false, false),
            ("ftp://localhost", false, false), ("file:///etc/passwd", false, false), ("https://", false, false),
            ("https://a.example/#x", false, false), ("https://a.example/ä", false, false),
            ("https://a.example/ x", false, false), ("https://a.example:99999", false, false),
            ("http://localhost:0/", false, false),
            ("a.example", false, false),
            ("", false, false), ("https://a.example/" + String(repeating: "x", count: 2048), false, false),
        ])
    func accepted(_ url: String, isAccepted: Bool, withPlaintext: Bool) {
        #expect(((try? HTTPEndpoint(url)) != nil) == isAccepted)
        #expect(((try? HTTPEndpoint(url, allowsPlaintext: true)) != nil) == withPlaintext)
    }

    @Test("an error does not show a query, a name or a password")
    func secrets() throws {
        let error = try #require(throws: TransportError.self) {
            try HTTPEndpoint("ftp://u:secret@a.example/x?key=secret")
        }
        #expect(error.message.contains("@a.example/x") && !error.message.contains("secret"), "\(error)")
        #expect(error.code == .addressInvalid)
    }

    @Test(
        "a URL without path and query is the root",
        arguments: [("https://a", true), ("https://a/", true), ("https://a/x", false), ("https://a/?x", false)])
    func root(_ url: String, isRoot: Bool) throws {
        #expect(try HTTPEndpoint(url).isRoot == isRoot)
    }
}
