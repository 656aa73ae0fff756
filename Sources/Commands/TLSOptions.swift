package import Trebuchet

/// `--tls-cert` and what belongs to it.
package enum TLSOptions {
    /// What the options of a server say; nil without them.
    package static func server(_ arguments: ParsedArguments) throws(UsageError) -> TLSServerSettings? {
        let (certificate, key) = (arguments.string("--tls-cert"), arguments.string("--tls-key"))
        guard let certificate, let key else {
            guard certificate == nil, key == nil else { throw UsageError("--tls-cert and --tls-key belong together") }
            return nil
        }
        return TLSServerSettings(
            certificateChainFile: certificate, privateKeyFile: key,
            clientAuthorityFile: arguments.string("--tls-client-ca"))
    }
}
