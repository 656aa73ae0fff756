/* react.js of Trebuchet, MIT License */
import{useMemo as o,useSyncExternalStore as r}from"react";function c(t,e,n){return o(()=>t.actor(e,n),[t,e,n])}function s(t,e){let n=o(()=>e?t.at(e):t,[t,e]);return r(n.subscribe,n.getSnapshot,n.getSnapshot)}export{c as useActor,s as useActorState};
