internal import Distributed
internal import Synchronization

/// The distributed methods of this program by mangled name. Older clients use these names, as do calls of methods without an
/// entry in a dispatch table.
///
/// They are read from metadata that the compiler emits. A peer's text is only compared with them: the runtime would demangle it
/// recursively and cache it forever.
package enum ProgramMethods {
    /// A distributed method of the program.
    package struct Method: Sendable {
        /// The name in the runtime: `$s4Demo8TodoListC03addC05titleySS_tYaKFTE`.
        package let identifier: String
        /// The name on the wire: `addTodo(title:)`.
        package let name: String
        /// The type, such as `Demo.TodoList`.
        let declaringType: String
    }

    private static let table: [String: Method] = {
        var table: [String: Method] = [:]
        for identifier in AccessibleFunctions.names where identifier.hasPrefix("$s") {
            let readable = RemoteCallTarget(identifier).description
            let beforeLabels = readable.prefix { $0 != "(" }
            guard let dot = beforeLabels.lastIndex(of: ".") else { continue }
            table[identifier] = Method(
                identifier: identifier, name: String(readable[readable.index(after: dot)...]),
                declaringType: String(readable[..<dot]))
        }
        return table
    }()

    /// Returns the method with this mangled name; nil if the program has none.
    static func find(_ identifier: String) -> Method? { identifier.hasPrefix("$s") ? table[identifier] : nil }
}

/// The names of the functions that the runtime can look up by name, from the sections that the compiler emits for them.
private enum AccessibleFunctions {
    /// The metadata of one image: the part of the Swift runtime's `MetadataSections` that is read here. Version 4 and later
    /// have the sections in this order.
    private struct Sections {
        let version: UInt
        let reserved: (UInt, UInt, UInt)
        /// Pairs of address and length: protocols, conformances, types, type references, reflection strings, fields, associated
        /// types, two of dynamic replacements, builtins, captures, multi-payload enums.
        let others: (Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair)
        let accessibleFunctions: Pair
    }

    /// The address and length of a section.
    private struct Pair {
        let start: UInt
        let length: UInt
    }

    /// The size of a record: five words of 32 bits. The first is the relative offset of the name.
    private static let recordBytes = 20

    /// The names collected so far.
    private final class Names {
        var all: [String] = []
    }

    static var names: [String] {
        #if os(Linux)
            let names = Names()
            // `names` is alive until the call returns.
            enumerateMetadataSections(
                { raw, context in
                    guard let context, raw.load(as: UInt.self) >= 4 else { return true }
                    let names = Unmanaged<Names>.fromOpaque(context).takeUnretainedValue()
                    AccessibleFunctions.read(raw.load(as: Sections.self).accessibleFunctions, into: names)
                    return true
                }, Unmanaged.passUnretained(names).toOpaque())
            return names.all
        #else
            return []
        #endif
    }

    private static func read(_ section: Pair, into names: Names) {
        guard var record = UnsafeRawPointer(bitPattern: section.start) else { return }
        for _ in 0..<Int(section.length) / recordBytes {
            let name = record + Int(record.load(as: Int32.self))
            names.all.append(String(cString: name.assumingMemoryBound(to: CChar.self)))
            record += recordBytes
        }
    }
}

#if os(Linux)
    /// A function of the Swift runtime. It calls `body` with the metadata of each image until `body` returns false.
    @_silgen_name("swift_enumerateAllMetadataSections")
    private func enumerateMetadataSections(
        _ body: @convention(c) (UnsafeRawPointer, UnsafeMutableRawPointer?) -> Bool, _ context: UnsafeMutableRawPointer?
    )
#endif
