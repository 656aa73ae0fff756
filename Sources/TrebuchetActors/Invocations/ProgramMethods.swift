internal import Distributed
internal import Synchronization

/// The distributed methods of this program, by the mangled names under which older clients, and methods that no dispatch
/// table has, are called.
///
/// They are read from what the compiler has left of them in the program. A peer's text is compared with them and goes no
/// further: the runtime would take it apart by recursion, and keep it for ever.
package enum ProgramMethods {
    package struct Method: Sendable {
        /// As the runtime knows it: `$s4Demo8TodoListC03addC05titleySS_tYaKFTE`.
        package let identifier: String
        /// As it stands on the wire: `addTodo(title:)`.
        package let name: String
        /// `Demo.TodoList`
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

    /// The method of this mangled name; nil when the program has none.
    static func find(_ identifier: String) -> Method? { identifier.hasPrefix("$s") ? table[identifier] : nil }
}

/// The names of the functions that a program can look up by name, from the sections that the compiler writes for them.
private enum AccessibleFunctions {
    /// What the runtime knows of one image: `MetadataSections` of the Swift runtime, as far as it is read here. Version 4
    /// and later have the sections in this order.
    private struct Sections {
        let version: UInt
        let reserved: (UInt, UInt, UInt)
        /// Pairs of address and length: protocols, conformances, types, type references, reflection strings, fields,
        /// associated types, two of dynamic replacements, builtins, captures, multi-payload enums.
        let others: (Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair, Pair)
        let accessibleFunctions: Pair
    }

    private struct Pair {
        let start: UInt
        let length: UInt
    }

    /// Five words of 32 bits; the first is how far from itself its name lies.
    private static let recordBytes = 20

    private final class Names {
        var all: [String] = []
    }

    static var names: [String] {
        #if os(Linux)
            let names = Names()
            // The names are there until the call returns.
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
    /// Of the Swift runtime: calls `body` with what it knows of each image, until that returns false.
    @_silgen_name("swift_enumerateAllMetadataSections")
    private func enumerateMetadataSections(
        _ body: @convention(c) (UnsafeRawPointer, UnsafeMutableRawPointer?) -> Bool, _ context: UnsafeMutableRawPointer?
    )
#endif
