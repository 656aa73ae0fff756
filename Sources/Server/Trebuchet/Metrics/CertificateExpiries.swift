internal import COpenSSL
internal import Glibc
internal import Synchronization

/// The times at which the certificates of a server's addresses expire, as they were at their last load.
package final class CertificateExpiries: Sendable {
    /// A certificate file, and the time at which its first certificate expires, in seconds since 1970; nil if it cannot be read.
    private struct File {
        let path: String
        let seconds: Int?
    }

    /// The files by endpoint: `clients`, `admin`, `inspector`.
    private let files = Mutex<[String: File]>([:])

    package init() {}

    /// Reads the certificate of an endpoint, after the endpoint has loaded it.
    package func read(_ path: String, of endpoint: String) {
        let file = File(path: path, seconds: Self.expiry(path))
        files.withLock { $0[endpoint] = file }
    }

    /// Reads all files again, after the endpoints have loaded them again.
    func readAgain() {
        for (endpoint, file) in files.withLock({ $0 }) { read(file.path, of: endpoint) }
    }

    /// The times in seconds since 1970, by endpoint, sorted.
    var all: [(endpoint: String, seconds: Int)] {
        files.withLock { files in
            files.compactMap { endpoint, file in file.seconds.map { (endpoint: endpoint, seconds: $0) } }
        }.sorted { $0.endpoint < $1.endpoint }
    }

    private static func expiry(_ path: String) -> Int? {
        guard let file = BIO_new_file(path, "r") else {
            ERR_clear_error()
            return nil
        }
        defer { BIO_free(file) }
        guard let certificate = PEM_read_bio_X509(file, nil, nil, nil) else {
            ERR_clear_error()
            return nil
        }
        defer { X509_free(certificate) }
        var (days, seconds): (Int32, Int32) = (0, 0)
        guard ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(certificate)) == 1 else { return nil }
        return time(nil) + Int(days) * 86_400 + Int(seconds)
    }
}
