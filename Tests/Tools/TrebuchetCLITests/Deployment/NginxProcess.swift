import Foundation
import Glibc
import TestCertificates
import TestSupport

/// A real nginx with a configuration from the page, in a temporary folder.
final class NginxProcess {
    /// The path of nginx: `TREBUCHET_NGINX` (empty for none), or on the `PATH`, or in Debian's location; nil if there is none.
    static let program: String? = {
        let environment = ProcessInfo.processInfo.environment
        if let path = environment["TREBUCHET_NGINX"] { return path.isEmpty ? nil : path }
        let folders =
            (environment["PATH"] ?? "").split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"]
        return folders.map { $0 + "/nginx" }.first { access($0, X_OK) == 0 }
    }()

    struct Refused: Error {
        let output: String
    }

    let port: Int
    private let folder: String
    private let process: ChildProcess

    /// - Parameters:
    ///   - site: the content of a file in `conf.d`.
    ///   - folder: an empty folder.
    /// - Throws: `Refused` when `nginx -t` finds a fault.
    init(site: String, port: Int, folder: String) async throws {
        guard let program = Self.program else { throw Refused(output: "there is no nginx") }
        self.port = port
        self.folder = folder
        // The surrounding configuration from Debian's nginx.conf, with other paths.
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "    \($0)_temp_path \(folder)/\($0);\n" }.joined()
        // Started by root, its workers would run as a user who may not read the folder.
        let user = getuid() == 0 ? "user root;\n" : ""
        try """
        \(user)worker_processes 1;
        pid \(folder)/nginx.pid;
        daemon off;
        events { worker_connections 512; }
        http {
            access_log off;
        \(temporary)    include \(folder)/site.conf;
        }
        """.write(toFile: folder + "/nginx.conf", atomically: true, encoding: .utf8)
        try site.write(toFile: folder + "/site.conf", atomically: true, encoding: .utf8)
        let arguments = ["-p", folder, "-c", folder + "/nginx.conf", "-e", folder + "/error.log"]
        let check = try await ChildProcess(program, ["-t"] + arguments, error: .merged).finish()
        guard check.status == 0 else { throw Refused(output: check.output) }
        process = try ChildProcess(program, arguments, error: .merged)
    }

    /// Its log.
    var log: String { (try? String(contentsOfFile: folder + "/error.log", encoding: .utf8)) ?? "" }

    func stop() async {
        process.signal(SIGTERM)
        _ = await process.finish()
    }
}

/// Distinct ports that are free now.
func freePorts(_ count: Int) -> [Int] {
    var sockets: [Int32] = []
    defer { for socket in sockets { close(socket) } }
    return (0..<count).map { _ in
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        sockets.append(socket)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        inet_pton(AF_INET, "127.0.0.1", &name.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = bind(socket, address, length)
                _ = getsockname(socket, address, &length)
            }
            return Int(UInt16(bigEndian: pointer.pointee.sin_port))
        }
    }
}
