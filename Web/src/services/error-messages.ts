/** The server's messages for refused writes, by the case of `CollectionError`; the placeholders are members of the case. */
const sentences: Record<string, string> = {
    unknownCaller: "the server does not identify callers",
    invalidName: "a collection's name has letters, digits, '-', '_' and '.'",
    invalidDocument: "the document cannot be stored: {_0}",
    notFound: "there is no document '{id}'",
    alreadyExists: "there is a document '{id}' already",
    forbidden: "the rules of the collection do not let you {_0} document '{id}'",
    conditionFailed: "the condition does not hold: document '{id}' is at revision {revision}",
    notAnArray: "the field '{field}' of document '{id}' is no array of links",
    notANumber: "the field '{field}' of document '{id}' is no number",
    numberOverflow: "the field '{field}' of document '{id}' would become too large a number",
    linkTargetMissing: "there is no document '{id}' to link to in collection '{collection}'",
    tooManyCommands: "a transaction has {limit} commands at most",
    tooDeep: "it nests deeper than {limit} arrays and objects",
    documentTooLarge: "document '{id}' of {bytes} bytes is too large; {limit} are allowed",
    tooManyDocuments: "the collection has {limit} documents already",
    collectionTooLarge: "the documents of the collection have {limit} bytes already",
    shareUsedUp: "{limit} {of} of the collection are what one may have now; the rest is for others ({setting})",
    tooManyCollections: "the server has {limit} collections already",
    outdated: "the write came after newer ones of its client and was not done",
    numberReused: "another write of the client had this number before; it was not done",
    refused: "the server takes no writes: {_0}",
}

/**
 * Returns the reason why a write was refused, in the server's wording for queries. Returns the error itself if its case is unknown here.
 */
export function sentenceOf(error: Record<string, any>): string {
    const [name = "", members]: [string?, any?] = Object.entries(error)[0] ?? []
    if (!members || !Object.hasOwn(sentences, name)) return "refused: " + JSON.stringify(error)
    const isAbsent = name === "conditionFailed" && members.revision == null
    const text = isAbsent ? "the condition does not hold: there is no document '{id}'" : sentences[name]!
    return text.replace(/\{(\w+)\}/g, (_, member) => members[member]) + (members.reason ? ": " + members.reason : "")
}
