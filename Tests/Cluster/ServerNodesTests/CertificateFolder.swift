import Foundation
import Networking
import Trebuchet
import TrebuchetNodes

/// A folder with the certificates of nodes, removed with the object.
final class CertificateFolder: Sendable {
    private let root: String
    let authority: CertifiedKey

    init(authority: CertifiedKey? = nil) throws {
        self.authority = try authority ?? .makeAuthority(validFor: .seconds(86_400))
        root = NSTemporaryDirectory() + "trebuchet-certificates-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        try write("authority.pem", self.authority.certificateText)
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    /// Issues a certificate to a node, replacing an earlier one.
    @discardableResult
    func issue(
        to node: String, by authority: CertifiedKey? = nil, validFor lifetime: Duration = .seconds(86_400)
    ) throws -> NodeCertificateFiles {
        let certified = try (authority ?? self.authority).issue(to: node, validFor: lifetime)
        try write("\(node).pem", certified.certificateText)
        try write("\(node)-key.pem", certified.keyText)
        return NodeCertificateFiles(
            certificateChainFile: path("\(node).pem"), privateKeyFile: path("\(node)-key.pem"),
            authorityFile: path("authority.pem"))
    }

    private func path(_ name: String) -> String { "\(root)/\(name)" }

    private func write(_ name: String, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path(name)))
    }
}
