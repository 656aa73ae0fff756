import Foundation

/// Certificates for localhost: `server` and `client` of the authority `ca`, and the self-signed `other`.
package enum TestCertificate {
    /// The path of `server.pem`, `server.key`, …
    package static func path(_ file: String) -> String {
        Bundle.module.url(forResource: "Certificates", withExtension: nil)!.appendingPathComponent(file).path
    }
}
