internal import Transports
internal import WebSockets

/// The origin of a web page, as in `Origin` (RFC 6454 §7): `https://app.example`, `http://localhost:3000`. Lower case and
/// without the default port, so that equal origins have equal bytes.
package struct WebOrigin: Hashable, Sendable, CustomStringConvertible {
    let scheme: String
    let authority: HostAndPort

    /// Parses a scheme, a host and an optional port; nil for anything else, such as paths, user names and `null`.
    package init?(_ text: String) {
        let bytes = HostAndPort.lowercase(text.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), let first = bytes.first,
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first), bytes[..<colon].allSatisfy(Self.isSchemeByte),
            bytes[colon...].starts(with: "://".utf8), let authority = HostAndPort(bytes[(colon + 3)...])
        else { return nil }
        scheme = String(decoding: bytes[..<colon], as: UTF8.self)
        let usual = Self.usualPort(scheme)
        self.authority = authority.port == usual ? HostAndPort(host: authority.host, port: nil) : authority
    }

    /// Parses the origins of a setting. Throws `addressInvalid` with the first text that is none.
    ///
    /// - Parameter also: What else the setting may have, for the error.
    static func list(
        _ texts: Set<String>, setting: String, also: String = ""
    ) throws(TransportError) -> Set<WebOrigin> {
        var listed: Set<WebOrigin> = []
        for text in texts {
            guard let origin = WebOrigin(text) else {
                throw TransportError(
                    .addressInvalid,
                    "'\(text)' in \(setting) is not an origin; write scheme://host or scheme://host:port without a path\(also)"
                )
            }
            listed.insert(origin)
        }
        return listed
    }

    /// The port of the origin, explicit or default; nil for schemes without a default port.
    var port: Int? { authority.port ?? Self.usualPort(scheme) }

    package var description: String { "\(scheme)://\(authority)" }

    /// Returns whether a page of this origin is same-origin with the requested host. The scheme does not count, since a proxy
    /// may terminate TLS; the port does. A `Host` without a port has the default port of either scheme.
    func isOwn(of host: HostAndPort) -> Bool {
        guard scheme == "http" || scheme == "https", authority.host == host.host, let port else { return false }
        return host.port.map { $0 == port } ?? (port == 80 || port == 443)
    }

    private static func usualPort(_ scheme: String) -> Int? {
        switch scheme {
        case "http": 80
        case "https": 443
        default: nil
        }
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): true
        default: false
        }
    }
}

/// A host with its port, as in `Host`: `example.com`, `localhost:8080`, `[::1]:8080`. In lower case.
struct HostAndPort: Hashable, Sendable, CustomStringConvertible {
    let host: String
    let port: Int?

    init(host: String, port: Int?) {
        self.host = host
        self.port = port
    }

    init?(_ text: String) { self.init(Self.lowercase(text.utf8)[...]) }

    /// Parses bytes that are in lower case.
    init?(_ bytes: ArraySlice<UInt8>) {
        let name: ArraySlice<UInt8>
        if bytes.first == UInt8(ascii: "[") {
            guard let end = bytes.firstIndex(of: UInt8(ascii: "]")), end > bytes.startIndex + 1,
                bytes[(bytes.startIndex + 1)..<end].allSatisfy(Self.isIPv6Byte)
            else { return nil }
            name = bytes[...end]
        } else {
            name = bytes.prefix { $0 != UInt8(ascii: ":") }
            guard !name.isEmpty, name.allSatisfy(Self.isNameByte) else { return nil }
        }
        let rest = bytes[name.endIndex...]
        if rest.isEmpty {
            port = nil
        } else {
            let digits = rest.dropFirst()
            guard rest.first == UInt8(ascii: ":"), (1...5).contains(digits.count), digits.allSatisfy(Self.isDigit),
                let number = Int(String(decoding: digits, as: UTF8.self)), (1...65535).contains(number)
            else { return nil }
            port = number
        }
        host = String(decoding: name, as: UTF8.self)
    }

    var description: String { port.map { "\(host):\($0)" } ?? host }

    /// Indicates whether browsers resolve the name to loopback without DNS, so that DNS rebinding cannot use it.
    var isLoopback: Bool {
        if host == "localhost" { return true }
        if host.hasPrefix("[") {
            let address = SocketAddress(host: String(host.dropFirst().dropLast()), port: 0, isIPv6: true)
            return AddressKey(address)?.isLoopback == true
        }
        if host.hasSuffix(".localhost") { return host.utf8.count > ".localhost".utf8.count }
        let parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0].elementsEqual("127".utf8)
            && parts.allSatisfy { part in
                (1...3).contains(part.count) && part.allSatisfy(Self.isDigit)
                    && Int(String(decoding: part, as: UTF8.self)).map { $0 <= 255 } == true
            }
    }

    fileprivate static func lowercase(_ text: String.UTF8View) -> [UInt8] {
        text.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: isDigit(byte)
        }
    }

    private static func isIPv6Byte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: ":"), UInt8(ascii: "."): true
        default: isDigit(byte)
        }
    }
}
