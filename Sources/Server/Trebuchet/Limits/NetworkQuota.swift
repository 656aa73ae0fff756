internal import WebSockets

/// The quotas and rates of a network of hosts, relative to those of one host.
package enum NetworkQuota {
    /// The number of hosts whose quotas a network has.
    package static let hosts = AddressKey.hostQuotasPerNetwork

    /// Returns the quota of a network.
    ///
    /// - Parameter perHost: the quota of a host.
    package static func limit(_ perHost: Int) -> Int { perHost > .max / hosts ? .max : perHost * hosts }
}
