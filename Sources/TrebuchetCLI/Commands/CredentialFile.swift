import Glibc
import TrebuchetServices

/// Where `sign-in` keeps who is signed in at a server: a file in `$XDG_STATE_HOME/trebuchet/credentials`, or in
/// `~/.local/state/trebuchet/credentials`.
enum CredentialFile {
    static func store(for url: RemoteURL) -> FileCredentialStore {
        FileCredentialStore(path: "\(folder)/\(name(of: url)).json")
    }

    private static var folder: String {
        // The specification has relative paths ignored.
        if let state = variable("XDG_STATE_HOME"), state.hasPrefix("/") { return "\(state)/trebuchet/credentials" }
        return "\(variable("HOME") ?? ".")/.local/state/trebuchet/credentials"
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// `ws-127.0.0.1-8080`; another one for each address.
    static func name(of url: RemoteURL) -> String {
        let host = url.host.lowercased().utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x61...0x7A, 0x2D, 0x2E: String(UnicodeScalar(byte))
            default: "%" + String(byte, radix: 16)
            }
        }
        return "\(url.isSecure ? "wss" : "ws")-\(host.joined())-\(url.port)"
    }
}
