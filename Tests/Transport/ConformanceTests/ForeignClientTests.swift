import TestCertificates
import TestSupport
import Testing

/// PyPI's `websockets` against `trebuchet serve`, each in a separate process.
@Suite(.timeLimit(.minutes(5))) struct ForeignClientTests {
    @Test("a Python client calls and observes with hand-written JSON of version 3")
    func version3() async throws { try await run("version3", []) }

    @Test(
        "a Python client works over TLS 1.2 and 1.3, with the certificate checked", arguments: ["TLSv1_2", "TLSv1_3"])
    func version3overTLS(_ version: String) async throws {
        let files = ["--tls-cert", TestCertificate.path("server.pem"), "--tls-key", TestCertificate.path("server.key")]
        try await run("version3", [TestCertificate.path("ca.pem"), version], serving: files)
    }

    @Test("a Python client works with compressed messages")
    func version3compressed() async throws { try await run("version3", ["compressed"], serving: ["--compression"]) }

    @Test("a Python client of versions 1 and 2 is supported: base64, mangled names, binary messages")
    func versions1and2() async throws {
        // `distributed thunk` of TrebuchetCLI.Counter.add(_:), as an existing client sends it.
        try await run("versions1and2", ["$s12TrebuchetCLI7CounterC3addyS2iYaKFTE"])
    }

    private func run(_ script: String, _ arguments: [String], serving options: [String] = []) async throws {
        let server = try await ServeProcess(arguments: options)
        try await PythonPeer(script, [server.url] + arguments).expectOK()
        await server.stop()
    }
}
