/* svelte.js of Trebuchet, MIT License */
function s(e){return{subscribe(t){let r=()=>t(e.getSnapshot()),o=e.subscribe(r);return r(),o}}}export{s as readable};
