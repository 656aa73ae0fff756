#if canImport(Darwin)
    public import Darwin
#else
    public import Glibc
#endif

/// A growable byte buffer that is written at its end and read from its start.
///
/// The buffer owns its memory and is not copyable. It is passed `inout` from layer to layer, so that a response is written once,
/// directly into the buffer that goes to the socket. The path has no reference counting and no exclusivity checks.
public struct ByteBuffer: ~Copyable {
    /// The start of the memory, or nil until the first byte is written.
    @usableFromInline internal var base: UnsafeMutablePointer<UInt8>?
    @usableFromInline internal var allocated: Int
    @usableFromInline internal var end: Int

    /// Creates an empty buffer. Memory is allocated at the first write, or immediately for a `capacity` in bytes.
    @inlinable
    public init(capacity: Int = 0) {
        base = nil
        allocated = 0
        end = 0
        if capacity > 0 { grow(to: capacity) }
    }

    deinit { free(base) }

    /// The number of bytes written.
    /// The number of bytes that fit in the allocated memory.
    @inlinable public var count: Int { end }
    @inlinable public var isEmpty: Bool { end == 0 }
    @inlinable public var capacity: Int { allocated }

    /// The bytes written so far; valid until the next mutation.
    @inlinable
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: end) }

    /// The bytes written so far, for changing in place; valid until the next growth.
    @inlinable
    public var mutableBytes: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: base, count: end) }

    /// Discards the bytes from offset `count` on.
    @inlinable
    public mutating func truncate(to count: Int) { end = Swift.min(end, count) }

    /// Discards all bytes and keeps the memory.
    @inlinable
    public mutating func removeAll() { end = 0 }

    /// Discards all bytes, and frees the memory if it is larger than `limit` bytes.
    @inlinable
    public mutating func reset(keepingAtMost limit: Int) {
        end = 0
        guard allocated > limit else { return }
        free(base)
        base = nil
        allocated = 0
    }

    /// Discards the first `count` bytes and moves the rest to the start.
    ///
    /// Traps if the buffer has fewer bytes.
    public mutating func removeFirst(_ count: Int) {
        guard count > 0, let base else { return }
        precondition(count <= end, "removeFirst past the end")
        memmove(base, base + count, end - count)
        end -= count
    }

    /// Reserves memory for `count` more bytes.
    @inlinable
    public mutating func reserve(_ count: Int) {
        if allocated - end < count { grow(to: end + count) }
    }

    /// Appends one byte.
    @inlinable
    public mutating func append(_ byte: UInt8) {
        if end == allocated { grow(to: end + 1) }
        base.unsafelyUnwrapped[end] = byte
        end += 1
    }

    /// Appends a copy of `source`.
    @inlinable
    public mutating func append(_ source: UnsafeRawBufferPointer) {
        let count = source.count
        guard count > 0 else { return }
        reserve(count)
        memcpy(base.unsafelyUnwrapped + end, source.baseAddress.unsafelyUnwrapped, count)
        end += count
    }

    /// Appends text that is known at compile time, such as `"\"payload\":"`.
    @inlinable
    public mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends the UTF-8 bytes of `text` unescaped.
    @inlinable
    public mutating func append(utf8 text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Appends a copy of `source`.
    @inlinable
    public mutating func append(_ source: [UInt8]) {
        source.withUnsafeBytes { append($0) }
    }

    /// Appends `count` bytes that `fill` initializes.
    @inlinable
    public mutating func append(count: Int, _ fill: (UnsafeMutablePointer<UInt8>) -> Void) {
        guard count > 0 else { return }
        reserve(count)
        fill(base.unsafelyUnwrapped + end)
        end += count
    }

    /// Opens a gap of `count` bytes at `offset` and moves the bytes behind it up. The content of the gap is undefined.
    @inlinable
    public mutating func insertGap(at offset: Int, count: Int) {
        guard count > 0 else { return }
        reserve(count)
        memmove(base.unsafelyUnwrapped + offset + count, base.unsafelyUnwrapped + offset, end - offset)
        end += count
    }

    /// Appends an integer in decimal.
    @inlinable
    public mutating func append(decimal value: UInt64) {
        var digits = 1
        var rest = value
        while rest >= 10 {
            rest /= 10
            digits += 1
        }
        append(count: digits) { target in
            var rest = value
            var at = digits
            repeat {
                at -= 1
                target[at] = UInt8(truncatingIfNeeded: rest % 10) &+ 0x30
                rest /= 10
            } while at > 0
        }
    }

    /// Appends an integer in decimal, with a minus sign when it is negative.
    @inlinable
    public mutating func append(decimal value: Int64) {
        if value < 0 { append(0x2D as UInt8) }
        append(decimal: value.magnitude)
    }

    /// Allocates at least `needed` bytes. The memory doubles as it grows, so that n appends cost O(n).
    @usableFromInline
    internal mutating func grow(to needed: Int) {
        let size = Swift.max(needed, Swift.max(64, allocated * 2))
        guard let memory = realloc(base, size) else { fatalError("out of memory: \(size) bytes for a buffer") }
        base = memory.assumingMemoryBound(to: UInt8.self)
        allocated = size
    }
}
