import Commands
import Glibc
import Networking
import Platform
import Trebuchet
import TrebuchetCluster

/// `trebuchet cluster init`: writes a certificate authority and the certificates of nodes.
enum ClusterCertificates {
    private static let day = Duration.seconds(86_400)
    private static let authorityLifetime = day * 3_650
    private static let (certificateEnd, keyEnd) = (".pem", "-key.pem")
    private static let authority = "authority"

    static let spec = CommandSpec(
        name: "cluster init",
        summary: "write a certificate authority for node links, and certificates of nodes",
        operands: "<dir>",
        operandCount: 1...1,
        options: [
            OptionSpec("--nodes", "LIST", "names of nodes that get a certificate: one,two (none)"),
            OptionSpec("--days", "N", "lifetime of the nodes' certificates (365)"),
        ],
        discussion: """
            Writes authority.pem and authority-key.pem, valid for 10 years, and NODE.pem and NODE-key.pem for each node.
            An authority that is in the folder already is used, for a node that is added later or for a new certificate.
            Never overwrites a file: to renew a certificate, remove the two files of the node first.
            Nodes need authority.pem and their own two files; keep authority-key.pem away from them.
            """,
        run: run)

    /// A file that the command writes.
    private struct Output {
        let name: String
        let content: [UInt8]
        var isSecret: Bool { name.hasSuffix(keyEnd) }
    }

    private static func run(_ arguments: ParsedArguments) async throws {
        let folder = arguments.operands[0]
        let nodes = try nodes(arguments.string("--nodes"))
        let days = try arguments.int("--days", in: 1...3_650) ?? 365
        if mkdir(folder, 0o755) != 0, errno != EEXIST { throw problem(folder, errno) }
        let (authority, isNew) = try authority(in: folder)
        guard isNew || !nodes.isEmpty else {
            throw UsageError("'\(folder)' has an authority already; name nodes that get a certificate with --nodes")
        }
        guard authority.remainingTime > .zero else {
            throw UsageError(
                "the authority in '\(folder)' has expired; make another in an empty folder, and replace all files")
        }
        var outputs = isNew ? files(Self.authority, authority) : []
        for node in nodes { outputs += files(node, try authority.issue(to: node, validFor: day * days)) }
        for output in outputs where access("\(folder)/\(output.name)", F_OK) == 0 {
            throw UsageError("'\(folder)/\(output.name)' exists; remove it first, or choose another folder")
        }
        try write(outputs, to: folder)
        for output in outputs { Console.print("\(folder)/\(output.name)") }
        Console.error("keep \(folder)/\(Self.authority)\(keyEnd) away from the nodes; start a node with:")
        let name = nodes.first ?? "NODE"
        Console.error(
            "  trebuchet serve --cluster URL --node \(name) --node-address HOST:PORT "
                + "--cluster-certificate \(folder)/\(name)\(certificateEnd) --cluster-key \(folder)/\(name)\(keyEnd) "
                + "--cluster-authority \(folder)/\(Self.authority)\(certificateEnd)")
    }

    private static func nodes(_ list: String?) throws(UsageError) -> [String] {
        guard let list else { return [] }
        var names: [String] = []
        for part in list.split(separator: ",", omittingEmptySubsequences: false) {
            let name = String(part.drop { $0 == " " })
            do {
                _ = try ClusterNode(name: name)
            } catch {
                throw UsageError("--nodes: '\(LogLine.of(name))': \(error.message)")
            }
            // Their files would have the same names.
            let isTaken = ([authority] + names).contains { $0 == name || "\($0)-key" == name || "\(name)-key" == $0 }
            guard !isTaken else {
                throw UsageError("--nodes: the files of '\(name)' would replace others; choose other names")
            }
            names.append(name)
        }
        return names
    }

    private static func files(_ name: String, _ certified: CertifiedKey) -> [Output] {
        [
            Output(name: name + certificateEnd, content: certified.certificateText),
            Output(name: name + keyEnd, content: certified.keyText),
        ]
    }

    /// Returns the authority in the folder, or a new one.
    private static func authority(in folder: String) throws -> (CertifiedKey, isNew: Bool) {
        let paths = [certificateEnd, keyEnd].map { "\(folder)/\(authority)\($0)" }
        let missing = paths.filter { access($0, F_OK) != 0 }
        guard missing.count < paths.count else {
            return (try CertifiedKey.makeAuthority(validFor: authorityLifetime), true)
        }
        if let path = missing.first { throw UsageError("'\(path)' is missing beside its other half") }
        let texts = try paths.map { try ConfigurationFile.read($0, of: "cluster init", maximum: 65_536) }
        let found: CertifiedKey
        do throws(TransportError) {
            found = try CertifiedKey(certificate: texts[0], key: texts[1])
        } catch {
            throw UsageError("'\(paths[0])' and '\(paths[1])' cannot be used: \(error.message)")
        }
        guard found.authorityCluster != nil else {
            throw UsageError("'\(paths[0])' is not an authority that 'trebuchet cluster init' has made")
        }
        return (found, false)
    }

    /// Writes all files or none.
    private static func write(_ outputs: [Output], to folder: String) throws(UsageError) {
        var written: [String] = []
        for output in outputs {
            let path = "\(folder)/\(output.name)"
            let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, output.isSecret ? 0o600 : 0o644)
            var error = file < 0 ? errno : 0
            if file >= 0 {
                written.append(path)
                let count = output.content.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
                if count != output.content.count { error = count < 0 ? errno : ENOSPC }
                if close(file) != 0, error == 0 { error = errno }
            }
            guard error != 0 else { continue }
            for path in written { unlink(path) }
            throw problem(path, error)
        }
    }

    private static func problem(_ path: String, _ number: Int32) -> UsageError {
        UsageError("cluster init '\(path)': \(String(cString: strerror(number)))")
    }
}
