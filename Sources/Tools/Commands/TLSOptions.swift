package import Trebuchet

/// The option `--tls-cert` and the options that belong to it.
package enum TLSOptions {
    /// Returns the TLS settings of a server from its options; nil without them.
    package static func server(_ arguments: ParsedArguments) throws(UsageError) -> TLSServerSettings? {
        let (certificate, key) = (arguments.string("--tls-cert"), arguments.string("--tls-key"))
        guard let certificate, let key else {
            guard certificate == nil, key == nil else {
                throw UsageError("--tls-cert and --tls-key require each other")
            }
            return nil
        }
        return TLSServerSettings(
            certificateChainFile: certificate, privateKeyFile: key,
            clientAuthorityFile: arguments.string("--tls-client-ca"))
    }
}
