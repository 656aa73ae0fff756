import Foundation
import Glibc
import TestCertificates
import TestSupport
import Testing
import Trebuchet
import TrebuchetTesting

/// The setup of the page: two processes of the unit, one of which serves, behind nginx with TLS.
final class Site {
    let port: Int
    private let unit: ServiceUnit
    private let ports: [Int]
    private let nginx: NginxProcess
    private var processes: [ChildProcess]

    init(_ folder: String) async throws {
        let page = try DocumentedPage("Guides/Deployment.md")
        let ports = freePorts(3)
        unit = try ServiceUnit.ofPage(data: folder + "/data.db", rules: folder + "/rules.json")
        let site = try #require(page.blocks("nginx").first).filledIn([
            "127.0.0.1:8081": "127.0.0.1:\(ports[0])", "127.0.0.1:8082": "127.0.0.1:\(ports[1])",
            "listen 443 ssl;": "listen 127.0.0.1:\(ports[2]) ssl;", "listen [::]:443 ssl;": "",
            "server_name app.example;": "server_name localhost;",
            "/etc/letsencrypt/live/app.example/fullchain.pem": TestCertificate.path("server.pem"),
            "/etc/letsencrypt/live/app.example/privkey.pem": TestCertificate.path("server.key"),
        ])
        self.ports = ports
        port = ports[2]
        let first = try unit.start(instance: "\(ports[0])", error: .captured)
        let line = await first.nextLine()
        #expect(line?.contains(" on ws://127.0.0.1:\(ports[0]) ") == true)
        processes = [first, try unit.start(instance: "\(ports[1])", error: .captured)]
        nginx = try await NginxProcess(site: site, port: ports[2], folder: folder)
        #expect(await eventually { isListening(ports[2]) })
    }

    var url: String { "wss://127.0.0.1:\(port)" }
    var log: String { nginx.log }

    func client() -> TrebuchetClient {
        var options = TrebuchetClient.Options()
        options.reconnect.initialDelay = .milliseconds(20)
        options.reconnect.maximumDelay = .milliseconds(200)
        return TrebuchetClient(
            transport: .webSocket(
                host: "127.0.0.1", port: port, tls: TLSClientSettings(trust: .file(TestCertificate.path("ca.pem")))),
            options: options)
    }

    /// Runs `systemctl restart` of one of the two and returns the exit code of the old process.
    func restart(_ index: Int) async throws -> Int32 {
        processes[index].signal(SIGTERM)
        let status = await processes[index].finish().status
        processes[index] = try unit.start(instance: "\(ports[index])", error: .captured)
        return status
    }

    func stop() async {
        await nginx.stop()
        for process in processes {
            process.signal(SIGKILL)
            _ = await process.finish()
        }
    }

    private func isListening(_ port: Int) -> Bool {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(socket) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = UInt16(port).bigEndian
        inet_pton(AF_INET, "127.0.0.1", &name.sin_addr)
        return withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }
}
