internal import COpenSSL

/// What has to be said to OpenSSL before anything else is asked of it.
package enum OpenSSL {
    private static let withoutExitHandler: UInt64 = 0x80000  // OPENSSL_INIT_NO_ATEXIT, a macro there

    /// Keeps OpenSSL from tearing itself down when the process exits: reactors still run then, and would use what is gone.
    /// Looked at before every first use of OpenSSL, since only the first one counts.
    package static let outlivesReactors: Bool = OPENSSL_init_crypto(withoutExitHandler, nil) == 1
}
