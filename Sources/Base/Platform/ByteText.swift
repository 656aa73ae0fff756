#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A string that is compared and ordered by its UTF-8 bytes. Swift's own equality treats canonically equivalent strings (é as one
/// scalar or as two) as equal, which a store does not.
package struct ByteText: Hashable, Sendable, Comparable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (one: Self, other: Self) -> Bool { one.text.isSameBytes(as: other.text) }

    package static func < (one: Self, other: Self) -> Bool { one.text.precedesInBytes(other.text) }

    package func hash(into hasher: inout Hasher) { text.hashBytes(into: &hasher) }
}

extension String {
    package func isSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        // Nearly all strings are contiguous; comparing byte by byte through views takes many times as long.
        let isSame = utf8.withContiguousStorageIfAvailable { bytes in
            other.utf8.withContiguousStorageIfAvailable { others in
                bytes.isEmpty || memcmp(bytes.baseAddress!, others.baseAddress!, bytes.count) == 0
            }
        }
        return (isSame ?? nil) ?? utf8.elementsEqual(other.utf8)
    }

    package func precedesInBytes(_ other: String) -> Bool { utf8.lexicographicallyPrecedes(other.utf8) }

    /// Returns the string without its first `count` UTF-8 bytes, which must end at a scalar. They may end inside a `Character`.
    package func dropFirst(bytes count: Int) -> String { String(decoding: utf8.dropFirst(count), as: UTF8.self) }

    package func hashBytes(into hasher: inout Hasher) {
        var copy = self
        copy.withUTF8 {
            hasher.combine($0.count)
            hasher.combine(bytes: UnsafeRawBufferPointer($0))
        }
    }
}

extension [UInt8] {
    /// The bytes without the UTF-8 byte order mark that some editors put at the beginning of a file.
    package var withoutByteOrderMark: [UInt8] { starts(with: [0xEF, 0xBB, 0xBF]) ? Array(dropFirst(3)) : self }
}
