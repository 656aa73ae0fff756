import Foundation
import Glibc
import Networking
import TestSupport
import Testing

/// `trebuchet cluster init`, and the options of `serve` for its files.
@Suite(.timeLimit(.minutes(5))) struct ClusterInitTests {
    private let folder = NSTemporaryDirectory() + "trebuchet-\(UUID())"

    private func trebuchet(_ arguments: String...) async throws -> ChildProcess.Outcome {
        try await ChildProcess(ServeProcess.tool, arguments, error: .captured).finish()
    }

    private func tls(of node: String) throws -> NodeTLS {
        try NodeTLS(
            certificateChainFile: "\(folder)/\(node).pem", privateKeyFile: "\(folder)/\(node)-key.pem",
            authorityFile: "\(folder)/authority.pem")
    }

    private func mode(_ name: String) -> UInt32 {
        var status = stat()
        return stat("\(folder)/\(name)", &status) == 0 ? status.st_mode & 0o777 : 0
    }

    @Test("cluster init writes an authority and nodes' certificates once, and adds nodes later")
    func files() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let made = try await trebuchet("cluster", "init", folder, "--nodes", "one,two.2", "--days", "30")
        #expect(made.status == 0, "\(made)")
        let names = ["authority.pem", "authority-key.pem", "one.pem", "one-key.pem", "two.2.pem", "two.2-key.pem"]
        #expect(made.output == names.map { "\(folder)/\($0)\n" }.joined())
        #expect(made.error.contains("--cluster-certificate \(folder)/one.pem"))
        #expect(names.filter { $0.hasSuffix("-key.pem") }.allSatisfy { mode($0) == 0o600 })
        let (one, two) = (try tls(of: "one"), try tls(of: "two.2"))
        #expect(one.name.cluster == two.name.cluster && two.name.node == "two.2")
        #expect(one.remainingTime > .seconds(29 * 86_400) && one.remainingTime < .seconds(31 * 86_400))

        let before = FileManager.default.contents(atPath: "\(folder)/one.pem")
        for (arguments, reason) in [
            (["--nodes", "three,one"], "one.pem' exists; remove it first"), ([], "has an authority already"),
            (["--nodes", "authority"], "would replace others"), (["--nodes", "a,a-key"], "would replace others"),
            (["--nodes", "a/b"], "'a/b': a node name must have"),
        ] {
            let refused = try await ChildProcess(
                ServeProcess.tool, ["cluster", "init", folder] + arguments, error: .captured
            ).finish()
            #expect(refused.status == 2 && refused.error.contains(reason), "\(refused)")
        }
        #expect(FileManager.default.contents(atPath: "\(folder)/one.pem") == before && mode("three.pem") == 0)
        #expect(try await trebuchet("cluster", "init", folder, "--nodes", "three").status == 0)
        #expect(try tls(of: "three").name.cluster == one.name.cluster)
        unlink("\(folder)/authority-key.pem")
        let missing = try await trebuchet("cluster", "init", folder, "--nodes", "four")
        #expect(missing.status == 2 && missing.error.contains("authority-key.pem' is missing"), "\(missing)")
    }

    @Test("serve names the options that its certificate files require")
    func options() async throws {
        let cluster = ["--cluster", "redis://127.0.0.1:1", "--node", "one"]
        for (arguments, reason) in [
            (["--cluster-key", "x"], "--cluster-key requires --cluster"),
            (cluster + ["--cluster-key", "x"], "--cluster-authority require each other"),
            (
                cluster + ["--cluster-certificate", "x", "--cluster-key", "x", "--cluster-authority", "x"],
                "--cluster-certificate requires --node-address"
            ),
        ] {
            let refused = try await ChildProcess(
                ServeProcess.tool, ["serve", "--port", "0"] + arguments, error: .captured
            ).finish()
            #expect(refused.status == 2 && refused.error.contains(reason), "\(refused)")
        }
    }
}
