import Commands
import Glibc
import TrebuchetServices

/// The credentials that `sign-in` stores for a server: a file in `$XDG_STATE_HOME/trebuchet/credentials`, or in
/// `.local/state/trebuchet/credentials` of the user's home.
enum CredentialFile {
    static func store(for url: RemoteURL) throws(UsageError) -> FileCredentialStore {
        FileCredentialStore(path: "\(try folder)/\(name(of: url)).json")
    }

    private static var folder: String {
        get throws(UsageError) {
            // The XDG specification requires relative paths to be ignored.
            if let state = path(getenv("XDG_STATE_HOME")) { return "\(state)/trebuchet/credentials" }
            // Services and containers may run without HOME; the password database then has the home.
            guard let home = path(getenv("HOME")) ?? path(getpwuid(geteuid())?.pointee.pw_dir) else {
                throw UsageError(
                    "no folder for credentials: user \(geteuid()) has no home directory; set XDG_STATE_HOME to an absolute path"
                )
            }
            return "\(home)/.local/state/trebuchet/credentials"
        }
    }

    /// Returns the path if it is absolute, else nil.
    private static func path(_ text: UnsafeMutablePointer<CChar>?) -> String? {
        text.map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// Returns a unique file name for an address: `ws-127.0.0.1-8080`, with a path `ws-127.0.0.1-8080-%2fpath`.
    static func name(of url: RemoteURL) -> String {
        let name = "\(url.isSecure ? "wss" : "ws")-\(encoded(url.host.lowercased()))-\(url.port)"
        let path = url.target.prefix { $0 != "?" }
        return path == "/" ? name : "\(name)-\(encoded(path))"
    }

    private static func encoded(_ text: some StringProtocol) -> String {
        text.utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x61...0x7A, 0x2D, 0x2E: String(UnicodeScalar(byte))
            default: "%" + String(byte, radix: 16)
            }
        }.joined()
    }
}
