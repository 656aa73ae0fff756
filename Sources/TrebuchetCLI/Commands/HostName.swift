/// The host of an option such as `--host` or `--admin`.
enum HostName {
    /// Returns the host without the brackets that URLs have around IPv6 addresses: `::` for `[::]`.
    static func withoutBrackets(_ text: some StringProtocol) -> String {
        guard text.hasPrefix("["), text.hasSuffix("]") else { return String(text) }
        return String(text.dropFirst().dropLast())
    }
}
